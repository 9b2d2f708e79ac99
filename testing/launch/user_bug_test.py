"""Commands print a traceback for a bug, also in a user's agent, and one line for bad input."""

import errno

from absl.testing import absltest, parameterized

from testing import commands, folders, messages

# Trains an agent of a user: a subclass of LASER whose loss has a bug.
_TRAIN = """
import runpy, sys
from laser_tf.agents import laser

class Own(laser.Laser):
    def loss(self, unroll):
        raise ValueError("bug of mine")

laser.Laser = Own
runpy.run_module("launch.train", run_name="__main__", alter_sys=True)
"""

# Runs a command that raises the given exception.
_RAISE = """
import sys
from laser_tf import errors
from launch import command_line

def main():
    raise {error}("no such thing")

command_line.run(main{expected})
"""

# Runs a command with the flags of `launch.export` that raises an error of a path.
_RAISE_OF_PATH = """
from launch import command_line, export

def main():
    raise PermissionError({error}, "reason", {path!r})

command_line.run(main)
"""


class UserBugTest(folders.FolderTest):
    def test_bug_in_the_loss_of_an_agent_prints_a_traceback(self):
        flags = "--config=configs/laser.py:catch", f"--workdir={self._workdir}"
        run = commands.run_program(_TRAIN, *flags)
        for part in ("Traceback", "in loss", "ValueError: bug of mine"):
            self.assertIn(part, run.stderr)

    def test_other_exceptions_keep_their_traceback(self):
        run = commands.run_program(_RAISE.format(error="ValueError", expected=""))
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("Traceback", run.stderr)
        self.assertIn("in main", run.stderr)

    @parameterized.parameters(("errors.ConfigError", ""), ("FileNotFoundError", ", (OSError,)"))
    def test_error_of_the_user_is_one_line(self, error, expected):
        run = commands.run_program(_RAISE.format(error=error, expected=expected))
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr.splitlines(), ["error: no such thing"])

    @parameterized.parameters(
        (errno.EACCES, "/runs/a/config.json", True),
        (errno.EACCES, "/other/config.json", False),
        (errno.ENOENT, "/runs/a/config.json", False),
    )
    def test_unusable_path_of_a_flag_is_one_line(self, number, path, is_line):
        run = commands.run_program(
            _RAISE_OF_PATH.format(error=number, path=path), "--workdir=/runs/a"
        )
        self.assertEqual(run.returncode, 1)
        # TensorFlow, which this program does not keep quiet, may write lines before.
        *_, last = run.stderr.splitlines()
        self.assertEqual(last.startswith("error: "), is_line, run.stderr)
        self.assertEqual("Traceback" in run.stderr, not is_line)
        messages.assert_names(run.stderr, path, "reason")


if __name__ == "__main__":
    absltest.main()
