"""Starts the project's commands as a user would."""

import os
import pathlib
import subprocess
import sys
import tempfile

from absl.testing import parameterized

from testing import messages


def start(module: str, *arguments: str) -> subprocess.Popen:
    """Starts `python -m launch.<module>` with text pipes as output and error streams."""
    return subprocess.Popen(
        [sys.executable, "-m", f"launch.{module}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Importing jax sets variables of TensorFlow that make the commands print messages.
        # Matplotlib warns if its default directory, the home, cannot be written.
        env={k: v for k, v in os.environ.items() if not k.startswith("TF_")}
        | {"MPLCONFIGDIR": tempfile.gettempdir()},
    )


def run(module: str, *arguments: str, seconds: float = 400.0) -> tuple[int, str, str]:
    """Returns exit status, output and errors of `python -m launch.<module>`.

    Raises:
      TimeoutExpired: If the command takes longer than `seconds`.
    """
    process = start(module, *arguments)
    output, errors = process.communicate(timeout=seconds)
    return process.returncode, output, errors


def without_warnings(errors: str) -> list[str]:
    """Returns the lines without warnings that depend on the machine."""
    warnings = ("no private network", "network_util.cc")
    return [line for line in errors.splitlines() if not any(text in line for text in warnings)]


class CommandTest(parameterized.TestCase):
    """Tests of commands, with the path of a directory `workdir` that does not exist yet."""

    def setUp(self):
        super().setUp()
        self.workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())) / "run"

    def succeed(self, module: str, *arguments: str, seconds: float = 400.0) -> tuple[str, str]:
        """Runs a command that must succeed; returns its output and errors."""
        code, output, errors = run(module, *arguments, seconds=seconds)
        self.assertEqual(code, 0, errors)
        return output, errors

    def assert_rejected(self, named: tuple, module: str, *arguments: str) -> None:
        """Asserts that a command fails with one line, which names keys and values."""
        code, _, errors = run(module, *arguments)
        self.assertNotEqual(code, 0)
        self.assert_is_error(errors, *named)

    def assert_is_error(self, errors: str, *named: object) -> None:
        """Asserts that a command printed one error, which names keys and values."""
        lines = without_warnings(errors)
        self.assertLen(lines, 1, errors)
        self.assertStartsWith(lines[0], "error: ")
        messages.assert_names(lines[0], *named)
