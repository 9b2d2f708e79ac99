"""Tests of worker processes: calls, crashes, signals and imports."""

import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from absl.testing import absltest, parameterized

from laser_tf.environments import worker_output, worker_pool
from testing import messages
from testing.environments import small_worker


def _make(*numbers, reply_seconds=60.0, progressed_at=lambda _: 0.0, close_seconds=10.0, **options):
    return contextlib.closing(
        worker_pool.WorkerPool(
            {
                f"game {number}": functools.partial(
                    small_worker.SmallWorker, number=number, **options
                )
                for number in numbers
            },
            reply_seconds,
            progressed_at=progressed_at,
            close_seconds=close_seconds,
        )
    )


def _lives(process):
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def _end(processes):
    """Whether all processes end soon; a signal takes effect after the call that sends it."""
    deadline = time.monotonic() + 30
    while any(map(_lives, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(_lives, processes))


class WorkerPoolTest(parameterized.TestCase):
    def test_games_answer_in_order_at_the_same_time_and_live_apart(self):
        with _make(10, 20, 30) as games:
            self.assertEqual(games.call([("add", 1), ("add", 2), ("add", 3)]), [11, 22, 33])
            processes = games.call([("process",)] * 3)
            start = time.monotonic()
            games.call([("wait", 2.0)] * 3)
            self.assertLess(time.monotonic() - start, 5.0)
        self.assertLen({*processes, os.getpid()}, 4)

    @parameterized.parameters("fail", "die")
    def test_restart_ends_what_a_game_has_started(self, method):
        with _make(1, 2) as games:
            engine, other = games.call([("start_engine",)] * 2)
            games.call([(method,), None])
            self.assertTrue(_end([engine]))
            self.assertTrue(_lives(other))

    def test_closing_ends_all_children_and_what_they_started(self):
        with _make(1, 2) as games:
            engines = games.call([("start_engine",), None])[:1]
            processes = games.call([("process",)] * 2)
        self.assertFalse(any(map(_lives, processes)))
        self.assertTrue(_end(engines))
        games.close()
        with self.assertRaises(RuntimeError):
            games.call([("process",)] * 2)

    def test_a_game_that_hangs_is_killed(self):
        with _make(-1, 2, close_seconds=1.0) as games:
            processes = games.call([("process",)] * 2)
        self.assertFalse(any(map(_lives, processes)))

    @parameterized.parameters("command", "fork", "spawn")
    def test_an_engine_that_a_game_has_started_ends_where_the_game_terminates_it(self, kind):
        with _make(1, reply_seconds=50.0) as games:
            self.assertEqual(games.call([("end_engine", kind)]), [-signal.SIGTERM])

    def _run(self, call, end="games.close()"):
        """Runs a process that has a worker; returns what the process printed."""
        program = (
            "import functools, os\n"
            "from laser_tf.environments import worker_pool\n"
            "from testing.environments import small_worker\n"
            "make = functools.partial(small_worker.SmallWorker, number=1)\n"
            "games = worker_pool.WorkerPool({'game': make}, 60.0)\n"
            f"games.call([{call}])\n{end}\n"
            "print('{}', flush=True)\nos._exit(0)\n"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        self.assertEqual(ended.stdout, b"{}\n")
        return ended.stderr

    def test_what_games_print_is_not_in_a_commands_output(self):
        self.assertIn(b"build time", self._run(("say", "build time")))

    @parameterized.parameters("games.close()", "games.call([('die',)])")
    def test_endless_output_is_cut_but_keeps_its_end(self, end):
        size, limit = 3 * worker_output.MAX_BYTES, worker_output.MAX_BYTES
        output = self._run(("shout", size), end)
        self.assertBetween(len(output), limit, limit + worker_output.TAIL_BYTES + 1_000)
        self.assertStartsWith(output, b"first words")
        self.assertEndsWith(output, b"last words\n")
        left_out = size + 22 - limit - worker_output.TAIL_BYTES
        self.assertIn(b"[%d bytes" % left_out, output)

    @parameterized.parameters(
        ("die", "3", ""), ("fail", "KeyError", "in fail"), ("hang", "3 s", "")
    )
    def test_failed_worker_restarts_and_the_others_continue(self, method, reason, details):
        with _make(1, 2, 3, reply_seconds=3.0 if method == "hang" else 60.0) as games:
            before = games.call([("process",)] * 3)
            answers = games.call([("add", 1), (method,), ("add", 3)])
            self.assertEqual((answers[0], answers[2]), (2, 6))
            self.assertIn(reason, answers[1].reason)
            self.assertIn(details, answers[1].details)
            self.assertFalse(_lives(before[1]))
            self.assertEqual(games.call([("restarts",)] * 3), [0, 1, 0])
            after = games.call([("process",)] * 3)
            self.assertEqual((after[0], after[2]), (before[0], before[2]))
        self.assertFalse(any(map(_lives, after)))

    def test_time_limit_restarts_with_progress_within_a_call(self):
        def progressed_at(_):
            return time.monotonic()

        with _make(1, reply_seconds=0.2, progressed_at=progressed_at) as games:
            self.assertEqual(games.call([("wait", 0.6)]), [None])

    def test_progress_of_one_game_does_not_help_another(self):
        def progressed_at(index):
            return 0.0 if index and is_made else time.monotonic()

        is_made = False
        with _make(1, 2, reply_seconds=0.5, progressed_at=progressed_at) as games:
            is_made = True
            first, second = games.call([("wait", 1.5), ("wait", 60.0)])
        self.assertIsNone(first)
        self.assertIsInstance(second, worker_pool.Failure)

    def test_a_child_that_was_killed_between_two_calls_is_found(self):
        with _make(1, 2) as games:
            os.kill(games.call([("process",)] * 2)[0], signal.SIGKILL)
            failure, answer = games.call([("add", 1)] * 2)
            self.assertIn("-9", failure.reason)
            self.assertEqual(answer, 3)
            self.assertEqual(games.call([("add", 1)] * 2), [2, 3])

    def test_a_game_that_cannot_be_made_is_named_in_one_line(self):
        with self.assertRaises(RuntimeError) as caught:
            _make(5, refuses_from=0)
        messages.assert_names(caught.exception, "game 5", "ValueError", "no game today")

    def test_a_game_that_cannot_be_made_again_says_so_at_each_call(self):
        with _make(1, refuses_from=1) as games:
            for reason in ("KeyError: 'lost'", "ValueError: no game today"):
                (failure,) = games.call([("fail",)])
                messages.assert_names(failure.reason, reason, "small_worker.py")

    def test_games_that_take_too_long_to_be_made_are_not_waited_for(self):
        with self.assertRaises(RuntimeError) as caught:
            _make(5, reply_seconds=0.5, hangs_from=0)
        messages.assert_names(caught.exception, "game 5", "environment.reply_seconds", 0.5)

    def test_children_import_their_game_and_nothing_of_the_parent(self):
        with _make(1) as games:
            (modules,) = games.call([("modules",)])
        self.assertContainsSubset({"testing.environments.small_worker"}, modules)
        self.assertNoCommonElements(
            modules, {"tensorflow", "laser_tf.types", "absl", "pytest", _NAME}
        )


_NAME = "testing.environments.worker_pool_test"  # whatever name it runs under
_PARENT = """
print("main module", flush=True)
from laser_tf.environments import worker_pool
from testing.environments import small_worker
games = worker_pool.WorkerPool({str(i): small_worker.SmallWorker for i in range(2)}, 60.0)
try:
    print(*games.call([("process",)] * 2), *games.call([("start_engine",)] * 2), flush=True)
    while True:
        games.call([METHOD] * 2)
except KeyboardInterrupt:
    games.close()
    print("closed", flush=True)
"""


class ParentTest(parameterized.TestCase):
    def _start(self, method="wait"):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "parent.py"  # a file: spawning would import it again
        program.write_text(_PARENT.replace("METHOD", repr((method,))))
        parent = subprocess.Popen(
            [sys.executable, str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
            start_new_session=True,
        )
        self.addCleanup(parent.kill)
        self.assertEqual(parent.stdout.readline(), "main module\n")
        return parent, [int(process) for process in parent.stdout.readline().split()]

    def test_ctrl_c_ends_the_parent_cleanly(self):
        parent, processes = self._start()
        os.killpg(parent.pid, signal.SIGINT)
        output, errors = parent.communicate(timeout=60)
        self.assertEqual((parent.returncode, output, errors), (0, "closed\n", ""))
        self.assertTrue(_end(processes))

    @parameterized.parameters("wait", "hang")
    def test_children_end_with_a_parent_that_was_killed(self, method):
        parent, processes = self._start(method)
        self.assertTrue(all(map(_lives, processes)))
        parent.kill()
        parent.communicate(timeout=60)
        self.assertTrue(_end(processes))


if __name__ == "__main__":
    absltest.main()
