"""Tests of worker processes: calls, crashes, signals and imports."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.environments import worker_pool
from testing import commands, folders, messages, processes
from testing.environments import small_worker


def _make(*numbers, reply_seconds=60.0, progressed_at=lambda _: 0.0, **options):
    factories = [
        functools.partial(small_worker.SmallWorker, number=number, **options) for number in numbers
    ]
    return contextlib.closing(
        worker_pool.WorkerPool(factories, reply_seconds, progressed_at=progressed_at)
    )


class WorkerPoolTest(parameterized.TestCase):
    def test_workers_answer_in_order_at_the_same_time(self):
        with _make(10, 20, 30) as workers:
            self.assertEqual(workers.call([("add", 1), ("add", 2), ("add", 3)]), [11, 22, 33])
            pids = workers.call([("process",)] * 3)
            start = time.monotonic()
            workers.call([("wait", 1.0)] * 3)
            self.assertLess(time.monotonic() - start, 2.5)
        self.assertLen({*pids, os.getpid()}, 4)

    @parameterized.parameters("fail", "die")
    def test_restart_ends_the_engine_of_the_worker(self, method):
        with _make(1, 2) as workers:
            engine, other = workers.call([("start_engine",)] * 2)
            workers.call([(method,), None])
            processes.wait_for_end([engine])
            self.assertTrue(processes.is_running(other))

    def test_close_ends_workers_and_their_engines(self):
        with _make(1, 2) as workers:
            engines = workers.call([("start_engine",), None])[:1]
            pids = workers.call([("process",)] * 2)
        self.assertFalse(any(map(processes.is_running, pids)))
        processes.wait_for_end(engines)
        workers.close()
        with self.assertRaises(RuntimeError):
            workers.call([("process",)] * 2)

    def test_worker_that_does_not_close_is_killed(self):
        self.enter_context(mock.patch.object(worker_pool, "_CLOSE_TIMEOUT_SECONDS", 1.0))
        with _make(-1, 2) as workers:
            pids = workers.call([("process",)] * 2)
        self.assertFalse(any(map(processes.is_running, pids)))

    @parameterized.parameters("command", "fork", "spawn")
    def test_terminated_engine_of_a_worker_ends(self, kind):
        with _make(1, reply_seconds=50.0) as workers:
            self.assertEqual(workers.call([("end_engine", kind)]), [-signal.SIGTERM])

    def test_output_of_workers_is_on_standard_error(self):
        program = (
            "from laser_tf.environments import worker_pool\n"
            "from testing.environments import small_worker\n"
            "pool = worker_pool.WorkerPool([small_worker.SmallWorker], 60.0)\n"
            "pool.call([('say', 'build time')])\npool.close()\nprint('{}')\n"
        )
        ended = commands.run_program(program, check=True)
        self.assertEqual((ended.stdout, ended.stderr), ("{}\n", "build time\n"))

    @parameterized.parameters(
        ("die", "3", ""), ("fail", "KeyError", "in fail"), ("hang", "1 s", "")
    )
    def test_failed_worker_restarts_and_the_others_continue(self, method, reason, details):
        with _make(1, 2, 3, reply_seconds=1.0 if method == "hang" else 60.0) as workers:
            before = workers.call([("process",)] * 3)
            answers = workers.call([("add", 1), (method,), ("add", 3)])
            self.assertEqual((answers[0], answers[2]), (2, 6))
            self.assertIn(reason, answers[1].reason)
            self.assertIn(details, answers[1].details)
            self.assertFalse(processes.is_running(before[1]))
            self.assertEqual(workers.call([("restarts",)] * 3), [0, 1, 0])
            after = workers.call([("process",)] * 3)
            self.assertEqual((after[0], after[2]), (before[0], before[2]))
        self.assertFalse(any(map(processes.is_running, after)))

    def test_progress_extends_the_time_limit_of_its_worker_only(self):
        def progressed_at(index):
            return 0.0 if index and is_made else time.monotonic()

        is_made = False
        with _make(1, 2, reply_seconds=0.5, progressed_at=progressed_at) as workers:
            workers.call([("process",)] * 2)
            is_made = True
            first, second = workers.call([("wait", 1.0), ("wait", 60.0)])
        self.assertIsNone(first)
        self.assertIsInstance(second, worker_pool.Failure)

    def test_worker_killed_between_calls_is_restarted(self):
        with _make(1, 2) as workers:
            os.kill(workers.call([("process",)] * 2)[0], signal.SIGKILL)
            failure, answer = workers.call([("add", 1)] * 2)
            self.assertIn("-9", failure.reason)
            self.assertEqual(answer, 3)
            self.assertEqual(workers.call([("add", 1)] * 2), [2, 3])

    def test_failed_creation_is_in_each_answer(self):
        with _make(1, refuses_from=1) as workers:
            for reason in ("KeyError: 'lost'", "ValueError: no level today"):
                (failure,) = workers.call([("fail",)])
                messages.assert_names(failure.reason, reason, "small_worker.py")

    def test_creation_has_a_time_limit(self):
        self.enter_context(mock.patch.object(worker_pool, "_CLOSE_TIMEOUT_SECONDS", 1.0))
        with _make(1, reply_seconds=0.5, hangs_from=0) as workers:
            (failure,) = workers.call([("process",)])
        messages.assert_names(failure.reason, "environment.reply_seconds", 0.5)


_PARENT = """
print("main module", flush=True)
from laser_tf.environments import worker_pool
from testing.environments import small_worker
workers = worker_pool.WorkerPool([small_worker.SmallWorker] * 2, 60.0)
try:
    print(*workers.call([("process",)] * 2), *workers.call([("start_engine",)] * 2), flush=True)
    while True:
        workers.call([METHOD] * 2)
except KeyboardInterrupt:
    workers.close()
    print("closed", flush=True)
"""


class ParentTest(folders.FolderTest):
    def _start(self, method="wait"):
        program = self._folder / "parent.py"  # Spawning would import it again.
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

    def test_ctrl_c_ends_workers_and_engines(self):
        parent, pids = self._start()
        os.killpg(parent.pid, signal.SIGINT)
        output, errors = parent.communicate(timeout=60)
        self.assertEqual((parent.returncode, output, errors), (0, "closed\n", ""))
        processes.wait_for_end(pids)

    @parameterized.parameters("wait", "hang")
    def test_workers_end_with_a_killed_parent(self, method):
        parent, pids = self._start(method)
        self.assertTrue(all(map(processes.is_running, pids)))
        parent.kill()
        parent.communicate(timeout=60)
        processes.wait_for_end(pids)


if __name__ == "__main__":
    absltest.main()
