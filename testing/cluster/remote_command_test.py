"""A command on a machine of a cluster: its process for real, what Ray does of it by hand."""

import fcntl
import json
import pathlib
import signal
import tempfile
import time
from unittest import mock

from absl.testing import absltest, parameterized
from ray import exceptions

from laser_tf.cluster import remote_command
from laser_tf.workdir import lock, run_directory

# Prints where it runs, and ends when it is asked to.
PROGRAM = """
import pathlib, signal, sys, time
import laser_tf
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print(pathlib.Path.cwd(), flush=True)
time.sleep(60)
"""


class CommandProcessTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())).resolve()
        (self._folder / "program.py").write_text(PROGRAM)
        self._log = self._folder / "logs/run.log"

    def _start(self, folder: pathlib.Path) -> remote_command.CommandProcess:
        return remote_command.CommandProcess(("program",), self._log, folder)

    def _poll(self, process: remote_command.CommandProcess) -> int:
        deadline = time.monotonic() + 60
        while (code := process.poll()) is None:
            self.assertLess(time.monotonic(), deadline)
        return code

    def _wait_for_log(self, text: str = "") -> None:
        deadline = time.monotonic() + 120
        while not self._log.exists() or not (said := self._log.read_text()) or text not in said:
            self.assertLess(time.monotonic(), deadline, self._log)
            time.sleep(0.02)

    @parameterized.parameters((signal.SIGTERM, 5), (signal.SIGINT, -signal.SIGINT))
    def test_it_runs_in_the_commands_folder_and_takes_signals_that_ray_blocks(self, number, code):
        # As in Ray's workers.
        self.addCleanup(signal.pthread_sigmask, signal.SIG_UNBLOCK, [signal.SIGINT])
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        process = self._start(self._folder)
        self._wait_for_log()
        self.assertIsNone(process.poll())
        process.send_signal(number)
        self.assertEqual(self._poll(process), code)
        self.assertEqual(self._log.read_text().splitlines()[0], str(self._folder))

    def test_a_folder_that_the_machine_lacks_is_done_without(self):
        self.assertEqual(self._poll(self._start(self._folder / "elsewhere")), 1)
        self.assertIn("No module named program", self._log.read_text())

    def test_a_training_waits_for_the_one_of_before_to_leave_its_folder(self):
        # Of another configuration, so that the training ends once it has the folder.
        other = {"config": {"run": {"seed": 7}}}
        (self._folder / run_directory.CONFIG_FILE).write_text(json.dumps(other))
        flags = ("--config=laser:catch", f"--workdir={self._folder}")
        with (self._folder / lock.FILE).open("w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            process = remote_command.CommandProcess(
                ("launch.train", *flags), self._log, self._folder
            )
            self.addCleanup(process.send_signal, signal.SIGKILL)
            self._wait_for_log(f"leave {self._folder}")
            self.assertIsNone(process.poll())
        self.assertEqual(self._poll(process), 1)
        self.assertIn("belongs to a run of another config", self._log.read_text())


class RemoteCommandTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._ray = self.enter_context(mock.patch.object(remote_command, "ray"))
        self._ray.exceptions = exceptions
        self._restarted = self.enter_context(mock.patch.object(remote_command.roles, "restarted"))
        self._actor = self._restarted.return_value.remote.return_value
        self._answer(None, ready=False)
        self._command = remote_command.RemoteCommand(
            ["launch.train", "--workdir=/w"], pathlib.Path("/w/run.log"), 4.0, 0.5
        )

    def _answer(self, code: int | Exception | None, ready: bool = True) -> None:
        """What the actor has answered, if it has."""
        self._ray.wait.return_value = ([object()] if ready else [], [])
        self._ray.get.side_effect = [code]

    def test_it_asks_for_room_and_waits_until_the_command_has_ended(self):
        self.assertEqual(self._restarted.call_args.kwargs["num_cpus"], 4.0)
        self.assertEqual(self._restarted.call_args.kwargs["num_gpus"], 0.5)
        self.assertIsNone(self._command.poll())
        self._ray.get.assert_not_called()  # which would wait for room
        self._answer(None)
        self.assertIsNone(self._command.poll())
        self.assertLen(self._actor.poll.remote.call_args_list, 2)
        self._answer(3)
        self.assertEqual(self._command.poll(), 3)
        self.assertLen(self._actor.poll.remote.call_args_list, 2)

    def test_one_that_runs_gets_signals(self):
        self._answer(None)
        self._command.poll()
        self._command.send_signal(signal.SIGINT)
        self._actor.send_signal.remote.assert_called_once_with(signal.SIGINT)
        self._ray.kill.assert_not_called()

    def test_one_without_room_is_withdrawn(self):
        self._command.send_signal(signal.SIGINT)
        self._ray.kill.assert_called_once_with(self._actor)
        self._answer(exceptions.RayActorError())
        with self.assertNoLogs(level="ERROR"):
            self.assertEqual(self._command.poll(), 1)

    def test_one_that_no_machine_keeps_has_failed(self):
        self._answer(exceptions.RayActorError())
        with self.assertLogs(level="ERROR") as logs:
            self.assertEqual(self._command.poll(), 1)
        self.assertRegex(logs.output[0], "no machine of the cluster keeps .*/w/run.log: The actor")


if __name__ == "__main__":
    absltest.main()
