"""Commands that other commands run: signals, failures and logs."""

import os
import pathlib
import signal
import subprocess
import sys
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.workdir import lock
from launch import command_line, subcommand
from testing import folders, messages, processes

# In place of launch.sweep: saves for a second when it is asked to end.
SWEEP = f"""#!{sys.executable}
import pathlib, signal, sys, time
def save(signal_number, _):
    time.sleep(1)
    with pathlib.Path(sys.argv[-1]).open("a") as file:
        file.write(f"saved after {{signal_number}}\\n")
    sys.exit(0)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, save)
pathlib.Path(sys.argv[-1]).write_text("started\\n")
time.sleep(100)
"""
PROGRAM = """
import logging, sys
from launch import subcommand
logging.basicConfig(level=logging.INFO, format="%(message)s")
sys.executable = sys.argv[1]
subcommand.run_all([subcommand.Command("sweep", (sys.argv[2],))])
print("continues")
"""
# In place of launch.train: fails for some names of its record.
TRAIN = f"""#!{sys.executable}
import pathlib, sys, time
record = pathlib.Path(sys.argv[-2])
record.touch()
deadline = time.monotonic() + 60
while not record.with_name(sys.argv[-1]).exists():
    time.sleep(0.02)
    assert time.monotonic() < deadline
print("all of", record.name, flush=True)
if record.name == "e":
    sys.exit("error: there is no level e")
if record.name == "b":
    record.with_name("failed").touch()
    sys.exit(1)
if sys.argv[-1] == "failed":
    time.sleep(0.5)  # b has ended by then, too
"""


class RunAllTest(folders.FolderTest):
    def _run(self, *names_and_waits, at_once):
        """Runs a command each, which ends when another one has started or b has failed."""
        program = self._folder / "command"
        program.write_text(TRAIN)
        program.chmod(0o700)
        commands = [
            subcommand.Command(
                "train", (str(self._folder / n), wait), n, self._folder / "logs" / f"{n}.log"
            )
            for n, wait in names_and_waits
        ]
        processes.keep_handlers(self)
        with mock.patch.object(sys, "executable", str(program)):
            try:
                subcommand.run_all(commands, at_once)
            finally:
                self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)
                started = {n for n, _ in names_and_waits if (self._folder / n).exists()}
                logs = {p.name: p.read_text().splitlines()[0] for p in self._folder.glob("logs/*")}
                self.assertEqual(logs, {f"{n}.log": f"all of {n}" for n in started})
                self.assertEqual("".join(sorted(started)), self.expected)

    def test_commands_run_at_once_with_a_log_each(self):
        self.expected = (
            "acd"  # a ends when c has started, c when d has: with one at a time none would
        )
        self._run(("a", "c"), ("c", "d"), ("d", "a"), at_once=3)

    def test_failure_starts_no_command_and_waits_for_others(self):
        self.expected = "ab"
        with messages.raises(command_line.UsageError, "launch.train", 1, "b.log"):
            self._run(("a", "failed"), ("b", "a"), ("c", "a"), at_once=2)

    def test_error_of_a_command_is_in_the_message(self):
        self.expected = "ae"
        with messages.raises(command_line.UsageError, "launch.train", 1, "no level e", "e.log"):
            self._run(("a", "e"), ("e", "a"), at_once=2)

    def test_command_waits_for_the_lock_of_a_run(self):
        program = self._folder / "command"
        variable = lock.WAIT_VARIABLE
        program.write_text(f"#!{sys.executable}\nimport os\nos.environ[{variable!r}]\n")
        program.chmod(0o700)
        processes.keep_handlers(self)
        with mock.patch.object(sys, "executable", str(program)):
            subcommand.run_all([subcommand.Command("train", ())])  # Raises if a command fails.

    def test_unwritable_log_is_rejected(self):
        command = subcommand.Command("train", ("x",), log=pathlib.Path(__file__) / "a.log")
        with messages.raises(command_line.UsageError, command.log):
            subcommand.run_all([command])

    def test_missing_log_is_named(self):
        command = subcommand.Command("train", ("x",), log=pathlib.Path("/no/such.log"))
        process = mock.Mock(spec=subcommand.Process)
        process.poll.return_value = 1
        processes.keep_handlers(self)
        with messages.raises(command_line.UsageError, 1, "/no/such.log"):
            subcommand.run_all([command], start=lambda _: process)


class SubcommandTest(folders.FolderTest):
    @parameterized.parameters(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    def test_signal_ends_the_command_in_order(self, signal_number):
        command, record = self._folder / "command", self._folder / "record"
        command.write_text(SWEEP)
        command.chmod(0o700)
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, command, record],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.wait_until(lambda: record.exists() and "started" in record.read_text())
        os.killpg(process.pid, signal_number)  # as Ctrl-C does: all of the terminal's group
        output, errors = process.communicate(timeout=60)
        processes.wait_until(lambda: "saved" in record.read_text())
        self.assertLen(record.read_text().splitlines(), 2)
        self.assertEmpty(output)
        self.assertEqual(process.returncode, -signal_number)
        if signal_number != signal.SIGKILL:
            self.assertLen(errors.splitlines(), 1)
            self.assertNotIn("Traceback", errors)


if __name__ == "__main__":
    absltest.main()
