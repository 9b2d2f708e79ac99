"""A command that is run from another: whoever ends the one ends the other in order."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from absl.testing import absltest, parameterized

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
subcommand.run("sweep", sys.argv[2])
print("went on")
"""


class SubcommandTest(parameterized.TestCase):
    @parameterized.parameters(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    def test_whoever_ends_it_ends_the_command_in_order(self, signal_number):
        with tempfile.TemporaryDirectory() as folder:
            command, record = pathlib.Path(folder) / "command", pathlib.Path(folder) / "record"
            command.write_text(SWEEP)
            command.chmod(0o700)
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, command, record],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._wait_for(record, "started")
            os.killpg(process.pid, signal_number)  # as Ctrl-C does: all of the terminal's group
            output, errors = process.communicate(timeout=60)
            self._wait_for(record, "saved")
            self.assertLen(record.read_text().splitlines(), 2)
        self.assertEmpty(output)
        self.assertEqual(process.returncode, -signal_number)
        if signal_number != signal.SIGKILL:
            self.assertEqual(errors.splitlines()[-1], "stopped; the same command goes on")
            self.assertNotIn("Traceback", errors)

    def _wait_for(self, path: pathlib.Path, text: str) -> None:
        deadline = time.monotonic() + 60
        while not (path.exists() and text in path.read_text()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


if __name__ == "__main__":
    absltest.main()
