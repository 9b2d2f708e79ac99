"""A Ray of a run's own that has too little, or does not start: without its processes."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.cluster import ray_session
from laser_tf.host import interruption
from laser_tf.training import cluster_config

_HAS_NOT_STARTED = RuntimeError("the raylet has not started")


def _start_with(argument: str) -> subprocess.Popen:
    """Starts a process with a child; its output ends once both have ended."""
    code = "import subprocess; subprocess.run(['sh', '-c', 'echo; read line'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, argument], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    return process


class OwnRayTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.enter_context(mock.patch.object(ray_session, "_FOLDERS", self._folder))
        self.enter_context(mock.patch.object(ray_session, "make_token"))
        self._ray = self.enter_context(mock.patch.object(ray_session, "ray"))
        self._ray.cluster_resources.return_value = {"CPU": 4.0, "GPU": 2.0}

    def _enter(self, cpus: float, gpus: float) -> None:
        with ray_session.session(cluster_config.ClusterConfig(), cpus, gpus):
            self._ray.shutdown.assert_not_called()

    def test_a_machine_with_too_few_gpus_is_refused_and_ray_ended(self):
        with self.assertRaisesRegex(
            ray_session.ClusterError,
            "^the run asks for 256 GPUs, but this machine has 2: lower cluster.learner_gpus",
        ):
            self._enter(4.0, 256.0)
        self._ray.shutdown.assert_called_once_with()

    def test_one_with_enough_is_taken_and_leaves_nothing_behind(self):
        self._enter(4.0, 2.0)
        self._ray.shutdown.assert_called_once_with()
        self.assertEmpty(list(self._folder.iterdir()))

    def test_ctrl_c_ends_its_start_and_leaves_nothing_behind(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.addCleanup(signal.signal, signal_number, signal.getsignal(signal_number))
        interrupted = interruption.Interruption()
        self._ray.init.side_effect = lambda **_: os.kill(os.getpid(), signal.SIGINT)
        with self.assertRaises(interruption.Stopped):
            with ray_session.session(cluster_config.ClusterConfig(), 4.0, 0.0, interrupted):
                self.fail("started")
        self._ray.shutdown.assert_called_once_with()
        self.assertEmpty(list(self._folder.iterdir()))

    def test_ctrl_c_in_its_start_ends_processes_of_ray(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.addCleanup(signal.signal, signal_number, signal.getsignal(signal_number))
        started = []

        def start(_temp_dir: str, **_) -> None:
            started.append(_start_with(f"--temp-dir={_temp_dir}"))
            self.addCleanup(started[0].communicate)
            os.kill(os.getpid(), signal.SIGINT)

        self._ray.init.side_effect = start
        with self.assertRaises(interruption.Stopped):
            with ray_session.session(
                cluster_config.ClusterConfig(), 4.0, 0.0, interruption.Interruption()
            ):
                self.fail("started")
        self.assertEmpty(started[0].stdout.read())  # before their input ends
        self.assertEqual(started[0].wait(), -signal.SIGKILL)

    def test_one_that_starts_at_its_last_attempt_is_taken(self):
        self._ray.init.side_effect = [_HAS_NOT_STARTED, _HAS_NOT_STARTED, None]
        with self.assertLogs(level="WARNING") as logs:
            with ray_session.session(cluster_config.ClusterConfig(), 4.0, 0.0):
                self.assertLen(self._ray.init.call_args_list, 3)
        self.assertLen(logs.output, 2)
        for line in logs.output:
            self.assertIn("Ray has not started (the raylet has not started): once more", line)

    def test_one_that_does_not_start_is_told_in_one_line_with_its_logs(self):
        self._ray.init.side_effect = _HAS_NOT_STARTED
        with (
            self.assertLogs(level="WARNING"),
            self.assertRaisesRegex(
                ray_session.ClusterError, "^cannot start Ray on this machine: .*; its logs are in "
            ),
        ):
            self._enter(4.0, 0.0)
        self.assertLen(list(self._folder.iterdir()), 1)


class CommonRayTest(parameterized.TestCase):
    @parameterized.parameters("local", "auto", "http://10.0.0.1", "10.0.0.1")
    def test_an_address_that_is_none_is_refused_in_one_line(self, address):
        with (
            mock.patch.dict(ray_session.os.environ, RAY_ADDRESS=address),
            self.assertRaisesRegex(
                ray_session.ClusterError,
                f"^cluster.address is auto, but RAY_ADDRESS is '{address}': let it be host:port",
            ),
            ray_session.session(cluster_config.ClusterConfig(actors=1, address="auto"), 1.0, 0.0),
        ):
            self.fail("it was taken")

    def test_a_host_that_is_no_name_is_refused_in_one_line(self):
        config = cluster_config.ClusterConfig(actors=1, address="head..cluster:6379")
        with (
            self.assertRaisesRegex(
                ray_session.ClusterError, "^no Ray answers at head..cluster:6379, the cluster.addr"
            ),
            ray_session.session(config, 1.0, 0.0),
        ):
            self.fail("it was taken")

    def test_a_port_of_something_else_is_refused_before_ray_tries_for_minutes(self):
        self.enter_context(mock.patch.object(ray_session, "_CONNECT_SECONDS", 0.3))
        init = self.enter_context(mock.patch.object(ray_session.ray, "init"))
        with socket.create_server(("127.0.0.1", 0)) as listens:
            address = f"127.0.0.1:{listens.getsockname()[1]}"
            with (
                self.assertRaisesRegex(
                    ray_session.ClusterError,
                    f"^no Ray answers at {address}, the cluster.address .what listens there is so",
                ),
                ray_session.session(
                    cluster_config.ClusterConfig(actors=1, address=address), 1.0, 0.0
                ),
            ):
                self.fail("it was taken")
        init.assert_not_called()


class AskedGpusTest(absltest.TestCase):
    def test_parts_of_several_gpus_are_refused_before_ray_does(self):
        for gpus in (0.0, 0.25, 1.0, 2.0):
            cluster_config.ClusterConfig(learner_gpus=gpus)
        with self.assertRaisesRegex(ValueError, "^learner_gpus is 1.5: use a part of one GPU, or"):
            cluster_config.ClusterConfig(learner_gpus=1.5)


if __name__ == "__main__":
    absltest.main()
