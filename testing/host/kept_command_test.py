"""A command that is kept alive, as a process."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from absl.testing import absltest

from testing import messages

_ROOT = pathlib.Path(__file__).resolve().parents[2]

# What a child does is said by the file that it finds: each start takes the first line.
_PROGRAM = """
import os, pathlib, signal, sys, time
from laser_tf.host import interruption, kept_command

path = pathlib.Path(sys.argv[1])
if not kept_command.is_child():
    kept_command.keep(["extra"])
orders = path.read_text().splitlines()
path.write_text("\\n".join(orders[1:]))
order = orders[0] if orders else "end"
print(order, *sys.argv[2:], flush=True)
if order == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if order == "exit":
    os._exit(1)
if order == "wait":
    interrupted = interruption.Interruption()
    while not interrupted.stop:
        time.sleep(0.05)
    time.sleep(1.0)  # it is saving
    with kept_command.ending():
        print("saved", *map(int, interrupted.signals), flush=True)
    interruption.end_by(interrupted.signal_number)
with kept_command.ending():
    if order == "stop":
        raise interruption.Stopped(signal.SIGINT)
    if order == "lose":
        raise kept_command.LostError("it is gone")
os._exit(3)
"""


class KeptCommandTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._orders = pathlib.Path(folder.name) / "orders"

    def _start(self, *orders: str) -> subprocess.Popen:
        self._orders.write_text("\n".join(orders))
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self._orders)],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def test_one_that_dies_is_started_again_and_its_end_is_handed_on(self):
        process = self._start("die", "exit", "lose")
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)
        lines = output.splitlines()
        self.assertEqual([line for line in lines if "extra" in line][-1], "end extra")
        messages.assert_names(output, "SIGKILL")
        self.assertIn("it is gone", output)
        messages.assert_names(output, 1)

    def test_one_that_cannot_go_on_is_given_up(self):
        process = self._start(*["exit"] * 10)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        messages.assert_names(output, 4)
        self.assertLen(self._orders.read_text().splitlines(), 6)

    def test_signals_reach_it_and_it_ends_by_them(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            process = self._start("wait")
            self.assertEqual(process.stdout.readline(), "wait extra\n")
            time.sleep(0.5)
            process.send_signal(signal_number)
            output, _ = process.communicate(timeout=60)
            self.assertEqual(output, f"saved {int(signal_number)}\n")
            self.assertEqual(process.returncode, -signal_number)

    def test_one_that_was_stopped_with_nothing_to_save_ends_by_the_signal(self):
        process = self._start("stop", "end")
        output, _ = process.communicate(timeout=60)
        self.assertEqual(output, "stop extra\n")  # is not started again
        self.assertEqual(process.returncode, -signal.SIGINT)

    def test_a_ctrl_c_after_another_signal_reaches_it_as_one(self):
        process = self._start("wait")
        self.assertEqual(process.stdout.readline(), "wait extra\n")
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(output, "saved 15 2\n")
        self.assertEqual(process.returncode, -signal.SIGTERM)

    def test_it_ends_with_the_process_that_keeps_it(self):
        process = self._start("wait")
        self.assertEqual(process.stdout.readline(), "wait extra\n")
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGKILL)
        self.assertEqual(process.stdout.readline(), "saved 15\n")
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    absltest.main()
