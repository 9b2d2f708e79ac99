"""Games in processes: calls, deaths, Ctrl-C, and what a child imports."""

import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.environments import game_processes
from testing.environments import small_game


def _make(*numbers):
    return contextlib.closing(
        game_processes.GameProcesses(
            {
                f"game {number}": functools.partial(small_game.SmallGame, number)
                for number in numbers
            }
        )
    )


def _lives(process):
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


class GameProcessesTest(parameterized.TestCase):
    def test_games_answer_in_order_at_the_same_time_and_live_apart(self):
        with _make(10, 20, 30) as games:
            self.assertEqual(games.call([("add", 1), ("add", 2), ("add", 3)]), [11, 22, 33])
            processes = games.call([("process",)] * 3)
            start = time.monotonic()
            games.call([("wait", 2.0)] * 3)
            self.assertLess(time.monotonic() - start, 5.0)
        self.assertLen({*processes, os.getpid()}, 4)

    def test_closing_ends_all_children_and_may_be_repeated(self):
        with _make(1, 2) as games:
            processes = games.call([("process",)] * 2)
        self.assertFalse(any(map(_lives, processes)))
        games.close()
        with self.assertRaisesRegex(RuntimeError, "the games are closed"):
            games.call([("process",)] * 2)

    def test_a_game_that_hangs_is_killed(self):
        with mock.patch.object(game_processes, "_PATIENCE", 1.0):
            with _make(-1, 2) as games:
                processes = games.call([("process",)] * 2)
        self.assertFalse(any(map(_lives, processes)))

    @parameterized.parameters(
        ("die", "^game 2 died with exit code 3: "), ("fail", "^game 2 failed: KeyError: 'lost'$")
    )
    def test_a_failure_is_named_in_one_line_and_ends_all(self, method, message):
        with _make(1, 2, 3) as games:
            processes = games.call([("process",)] * 3)
            with self.assertRaisesRegex(RuntimeError, message) as context:
                games.call([("add", 1), (method,), ("wait", 0.1)])
            self.assertFalse(any(map(_lives, processes)))
        self.assertNotIn("\n", str(context.exception))

    def test_a_child_that_was_killed_between_two_calls_is_named(self):
        with _make(1, 2) as games:
            os.kill(games.call([("process",)] * 2)[0], signal.SIGKILL)
            with self.assertRaisesRegex(RuntimeError, "game 1 died with exit code -9"):
                games.call([("add", 1)] * 2)

    def test_a_game_that_cannot_be_made_is_named_in_one_line(self):
        factory = functools.partial(small_game.SmallGame, refuses=True)
        with self.assertRaisesRegex(RuntimeError, "^game 5 failed: ValueError: no game today$"):
            game_processes.GameProcesses({"game 5": factory})

    def test_children_import_their_game_and_nothing_of_the_parent(self):
        with _make(1) as games:
            (modules,) = games.call([("modules",)])
        self.assertContainsSubset({"testing.environments.small_game"}, modules)
        self.assertNoCommonElements(
            modules, {"tensorflow", "numpy", "laser_tf.types", "absl", "pytest", _NAME}
        )


_NAME = "testing.environments.game_processes_test"  # whatever name it runs under
_PARENT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
print("main module", flush=True)
from laser_tf.environments import game_processes
from testing.environments import small_game
games = game_processes.GameProcesses({str(i): small_game.SmallGame for i in range(2)})
try:
    print(*games.call([("process",)] * 2), flush=True)
    while True:
        games.call([("wait", 0.05)] * 2)
except KeyboardInterrupt:
    games.close()
    print("closed", flush=True)
"""


class ParentTest(parameterized.TestCase):
    def _start(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "parent.py"  # a file: spawning would import it again
        program.write_text(_PARENT)
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
        self.assertFalse(any(map(_lives, processes)))

    def test_children_end_with_a_parent_that_was_killed(self):
        parent, processes = self._start()
        self.assertTrue(all(map(_lives, processes)))
        parent.kill()
        parent.communicate(timeout=60)
        deadline = time.monotonic() + 30
        while any(map(_lives, processes)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(any(map(_lives, processes)))


if __name__ == "__main__":
    absltest.main()
