"""A new Ray that has too little, or does not start, and bad addresses, without Ray."""

import os
import signal
import socket
import subprocess
import sys
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.cluster import ray_session
from laser_tf.host import interruption
from laser_tf.training import cluster_config
from laser_tf.workdir import lock, run_directory
from testing import folders, messages, processes

_START_FAILURE = RuntimeError("the raylet has not started")


def _start_with(argument: str) -> subprocess.Popen:
    """Starts a process with a child; its output ends once both have ended."""
    code = "import subprocess; subprocess.run(['sh', '-c', 'echo; read line'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, argument], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    return process


class NewRayTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self.enter_context(mock.patch.object(ray_session, "make_token"))
        self._ray = self.enter_context(mock.patch.object(ray_session, "ray"))
        self._ray.cluster_resources.return_value = {"CPU": 4.0, "GPU": 2.0}

    def _enter(
        self,
        gpus: float = 0.0,
        signals: interruption.Interruption | None = None,
        wait_minutes: float = 0.0,
    ) -> None:
        config = cluster_config.ClusterConfig(wait_minutes=wait_minutes)
        with ray_session.session(config, 4.0, gpus, signals, str(self._folder)):
            self._ray.shutdown.reset_mock()

    @parameterized.parameters(0.0, 30.0)
    def test_too_few_gpus_end_ray(self, wait_minutes):
        with messages.raises(ray_session.ClusterError, 256, "GPUs", 2, "cluster.learner_gpus"):
            self._enter(gpus=256.0, wait_minutes=wait_minutes)  # No machine can join.
        self._ray.shutdown.assert_called_once_with()

    def test_session_removes_its_folder(self):
        self._enter(gpus=2.0)
        self._ray.shutdown.assert_called_once_with()
        self.assertEmpty(list(self._folder.iterdir()))

    @parameterized.parameters(run_directory.WorkdirError, lock.InUseError)
    def test_rejected_directory_leaves_no_folder(self, error):
        config = cluster_config.ClusterConfig(actors=1)
        with (
            self.assertRaises(error),
            ray_session.session(config, 1.0, 0.0, parent=str(self._folder)),
        ):
            raise error
        self.assertEmpty(list(self._folder.iterdir()))

    def test_ctrl_c_during_the_start_ends_its_processes(self):
        processes.keep_handlers(self)
        started = []

        def start(_temp_dir: str, **_) -> None:
            started.append(_start_with(f"--temp-dir={_temp_dir}"))
            self.addCleanup(started[0].communicate)
            os.kill(os.getpid(), signal.SIGINT)

        self._ray.init.side_effect = start
        with self.assertRaises(interruption.Stopped):
            self._enter(signals=interruption.Interruption())
        self._ray.shutdown.assert_called_once_with()
        self.assertEmpty(started[0].stdout.read())  # Before their input ends.
        self.assertEqual(started[0].wait(), -signal.SIGKILL)
        self.assertEmpty(list(self._folder.iterdir()))

    def test_start_succeeds_at_the_last_attempt(self):
        self._ray.init.side_effect = [_START_FAILURE, _START_FAILURE, None]
        with self.assertLogs(level="WARNING") as logs:
            self._enter()
        self.assertLen(logs.output, 2)

    def test_failed_start_names_the_folder_with_the_logs(self):
        self._ray.init.side_effect = _START_FAILURE
        with self.assertLogs(level="WARNING"), self.assertRaises(ray_session.ClusterError) as error:
            self._enter()
        (folder,) = self._folder.iterdir()
        messages.assert_names(error.exception, folder, _START_FAILURE)


class ClusterTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(mock.patch.object(ray_session, "_CONNECT_TIMEOUT_SECONDS", 0.3))

    def _enter(self, address: str) -> None:
        config = cluster_config.ClusterConfig(actors=1, address=address)
        with ray_session.session(config, 1.0, 0.0):
            self.fail("accepted")

    @parameterized.parameters("auto", "http://10.0.0.1")
    def test_address_without_an_answer_is_rejected(self, address):
        with (
            mock.patch.dict(os.environ, RAY_ADDRESS=address),
            messages.raises(ray_session.ClusterError, address, "cluster.address", "RAY_ADDRESS"),
        ):
            self._enter("auto")

    def test_port_of_another_program_is_rejected(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
            with messages.raises(ray_session.ClusterError, address, "cluster.address"):
                self._enter(address)

    def test_part_of_several_gpus_is_rejected(self):
        with messages.raises(ValueError, "learner_gpus", 1.5):
            cluster_config.ClusterConfig(learner_gpus=1.5)


if __name__ == "__main__":
    absltest.main()
