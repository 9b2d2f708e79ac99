"""A command as a job of a Ray on this machine."""

import os
import pathlib
import signal
import tempfile
import time

import ray
from absl.testing import absltest

from laser_tf.cluster import ray_session, remote_command
from testing import processes

# Prints its directory; takes a second to save itself after a signal to stop.
_PROGRAM = """
import pathlib, signal, sys, time

def stop(*_):
    time.sleep(1.0)
    print("saved", flush=True)
    sys.exit(5)

signal.signal(signal.SIGTERM, stop)
print(pathlib.Path.cwd(), flush=True)
if sys.argv[1:] == ["--wait"]:
    time.sleep(600)
sys.exit(7)
"""
_TIMEOUT_SECONDS = 120.0


class RemoteCommandTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Short, because Linux limits the length of a socket's path.
        cls._ray_folder = cls.enterClassContext(
            tempfile.TemporaryDirectory(dir="/tmp", prefix="r", ignore_cleanup_errors=True)
        )
        cls._folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory())).resolve()
        (cls._folder / "program.py").write_text(_PROGRAM)
        before = pathlib.Path.cwd()
        cls.addClassCleanup(os.chdir, before)
        os.chdir(cls._folder)
        ray_session.make_token()
        ray.init(
            address="local", num_cpus=2, include_dashboard=True, log_to_driver=False,
            configure_logging=False, _node_ip_address="127.0.0.1", _temp_dir=cls._ray_folder,
        )  # fmt: skip
        cls.addClassCleanup(ray.shutdown)

    def _start(self, log: pathlib.Path, *flags: str, cpus: float = 1.0):
        command = remote_command.RemoteCommand(("program", *flags), log, cpus, 0.0)
        self.addCleanup(command.send_signal, signal.SIGTERM)
        return command

    def _wait(self, command: remote_command.RemoteCommand) -> int:
        processes.wait_until(lambda: command.poll() is not None, _TIMEOUT_SECONDS)
        return command.poll()

    def test_exit_code_and_output_are_those_of_the_command(self):
        log = self._folder / "logs with spaces/run.log"
        self.assertEqual(self._wait(self._start(log)), 7)
        self.assertEqual(log.read_text().split(), [str(self._folder)])

    def test_stopped_command_saves_itself(self):
        log = self._folder / "stopped.log"
        command = self._start(log, "--wait")
        processes.wait_until(lambda: log.exists() and log.read_text(), _TIMEOUT_SECONDS, command)
        command.send_signal(signal.SIGINT)
        self.assertNotEqual(self._wait(command), 0)
        self.assertEqual(log.read_text().split()[-1], "saved")

    def test_command_without_resources_waits(self):
        command = self._start(self._folder / "waiting.log", cpus=100.0)
        for _ in range(2):
            self.assertIsNone(command.poll())
            time.sleep(0.5)


if __name__ == "__main__":
    absltest.main()
