"""Starts the project's commands as a user would."""

import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import textwrap

from absl.testing import parameterized

from testing import forks, messages


def start(module: str, *arguments: str) -> subprocess.Popen:
    """Starts `python -m launch.<module>` with text pipes as output and error streams."""
    return subprocess.Popen(
        [sys.executable, "-m", f"launch.{module}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=forks.variables(),
    )


def run(module: str, *arguments: str, seconds: float = 400.0) -> tuple[int, str, str]:
    """Returns exit status, output and errors of `python -m launch.<module>`.

    Raises:
      TimeoutExpired: If the command takes longer than `seconds`.
    """
    process = start(module, *arguments)
    output, errors = process.communicate(timeout=seconds)
    return process.returncode, output, errors


def run_program(program: str, *arguments: object, **options) -> subprocess.CompletedProcess:
    """Runs a Python program; returns its exit status, output and errors.

    Args:
      program: Code, which may be indented.
      *arguments: Arguments of the command line.
      **options: Options of `subprocess.run`.
    """
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    options = {"capture_output": True, "text": True, "timeout": 400.0} | options
    return subprocess.run(command, **options)


def run_forked(module: str, *arguments: str, seconds: float = 400.0) -> tuple[int, str, str]:
    """Returns what `run` returns, from a process in which TensorFlow is imported already.

    It saves several seconds, and serves tests of what a command does after its start.

    Raises:
      TimeoutError: If the command takes longer than `seconds`.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("output", "errors")]
        process = forks.context().Process(target=_run_as_main, args=(module, arguments, paths))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{module} {arguments}")
        output, errors = (path.read_text() for path in paths)
        return process.exitcode, output, errors


def _run_as_main(module: str, arguments: tuple[str, ...], paths: list[pathlib.Path]) -> None:
    """Runs a command in this process, with files as output and error streams."""
    for number, path in enumerate(paths, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.argv[1:] = arguments
    runpy.run_module(f"launch.{module}", run_name="__main__", alter_sys=True)


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
        """Runs a command that must succeed, see `run_forked`; returns its output and errors."""
        code, output, errors = run_forked(module, *arguments, seconds=seconds)
        self.assertEqual(code, 0, errors)
        return output, errors

    def assert_rejected(
        self, named: tuple, module: str, *arguments: str, forked: bool = True
    ) -> None:
        """Asserts that a command fails with one line, which names keys and values.

        Args:
          named: Keys and values.
          module: Name of the command.
          *arguments: Flags of the command.
          forked: Whether to use `run_forked`, which is faster than `run`.
        """
        code, _, errors = (run_forked if forked else run)(module, *arguments)
        self.assertNotEqual(code, 0)
        self.assert_is_error(errors, *named)

    def assert_is_error(self, errors: str, *named: object) -> None:
        """Asserts that a command printed one error, which names keys and values."""
        lines = without_warnings(errors)
        self.assertLen(lines, 1, errors)
        self.assertStartsWith(lines[0], "error: ")
        messages.assert_names(lines[0], *named)
