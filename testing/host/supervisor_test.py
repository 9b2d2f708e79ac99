"""Processes are started again when they end with an error, and not when they are done."""

import pathlib
import signal
import tempfile
import time
from unittest import mock

from absl.testing import absltest

from laser_tf.host import supervisor

# Appends a line to its file each time it starts, then does what its second argument says.
PROGRAM = """
import os, pathlib, sys, time
runs = pathlib.Path(sys.argv[1])
with runs.open("a") as file:
    file.write("x")
exec(sys.argv[2])
"""


class SupervisorTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        (self._folder / "program.py").write_text(PROGRAM)
        self.enter_context(mock.patch.object(supervisor, "_DELAY_SECONDS", 0.05))

    def _start(self, code: str) -> supervisor.Process:
        process = supervisor.Process(
            "the program",
            "program",
            [str(self._folder / "runs"), code],
            self._folder / "log",
            {"PYTHONPATH": str(self._folder)},
        )
        self.addCleanup(process.stop, signal.SIGKILL)
        return process

    def _runs(self) -> int:
        path = self._folder / "runs"
        return len(path.read_text()) if path.exists() else 0

    def _watch(self, process: supervisor.Process, until) -> int:
        """Watches until a condition holds; returns how often it was told of an end."""
        ends, deadline = 0, time.monotonic() + 60
        while not until():
            self.assertLess(time.monotonic(), deadline)
            ends += process.watch()
            time.sleep(0.02)
        return ends

    def test_a_killed_process_is_started_again(self):
        process = self._start("time.sleep(100)")
        for count in (1, 2):
            self._watch(process, lambda count=count: self._runs() == count)
            process.stop(signal.SIGKILL)
            ends = self._watch(process, lambda count=count: self._runs() == count + 1)
            self.assertEqual(ends, 1)
            self.assertFalse(process.is_over)
        self.assertEqual(process.restarts, 2)

    def test_a_process_that_is_done_is_left_alone(self):
        process = self._start("print('done')")
        self._watch(process, lambda: process.is_over)
        for _ in range(10):
            self.assertFalse(process.watch())
        self.assertEqual(self._runs(), 1)
        self.assertEqual((self._folder / "log").read_text(), "done\n")

    def test_a_process_that_never_lives_is_given_up(self):
        process = self._start("sys.exit(3)")
        self._watch(process, lambda: process.has_failed)
        self.assertEqual(self._runs(), 4)
        self.assertTrue(process.is_over)

    def test_one_that_asks_to_be_started_again_is_not_given_up(self):
        process = self._start(f"sys.exit({supervisor.TRY_AGAIN})")
        self._watch(process, lambda: self._runs() >= 7)
        self.assertFalse(process.has_failed)

    def test_stopping_ends_the_process_for_good(self):
        process = self._start("time.sleep(100)")
        self._watch(process, lambda: self._runs() == 1)
        supervisor.end([process], signal.SIGTERM, 20.0, bool)
        self.assertFalse(process.is_running)
        self.assertEqual(self._runs(), 1)

    def test_one_that_has_crashed_is_not_over(self):
        process = self._start("time.sleep(100)")
        self._watch(process, lambda: self._runs() == 1)
        process.stop(signal.SIGKILL)
        while process.is_running:
            time.sleep(0.02)
        self.assertFalse(process.is_over)  # nor before anybody has watched

    def test_those_that_do_not_end_are_killed_after_one_wait_for_all(self):
        processes = [self._start_stubborn(name) for name in ("a", "b", "c")]
        start = time.monotonic()
        supervisor.end(processes, signal.SIGTERM, 2.0, bool)
        self.assertBetween(time.monotonic() - start, 2.0, 3.9)
        self.assertFalse(any(process.is_running for process in processes))

    def test_a_hurry_ends_the_wait(self):
        process, answers = self._start_stubborn("a"), iter((False, False, True))
        supervisor.end([process], signal.SIGTERM, 1e6, lambda: next(answers))
        self.assertFalse(process.is_running)

    def _start_stubborn(self, name: str) -> supervisor.Process:
        up = self._folder / f"{name}.up"
        process = self._start(
            f"import signal\n"
            f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            f"pathlib.Path({str(up)!r}).touch()\n"
            f"time.sleep(100)"
        )
        self._watch(process, up.exists)
        return process


if __name__ == "__main__":
    absltest.main()
