"""Starts the project's commands as a user would."""

import os
import subprocess
import sys
import tempfile


def start(module: str, *arguments: str) -> subprocess.Popen:
    """Starts `python -m launch.<module>`; its output and errors are pipes of text."""
    return subprocess.Popen(
        [sys.executable, "-m", f"launch.{module}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What importing jax in another test leaves behind would undo the scripts' own silence.
        # Matplotlib complains where the home, its default, cannot be written.
        env={k: v for k, v in os.environ.items() if not k.startswith("TF_")}
        | {"MPLCONFIGDIR": tempfile.gettempdir()},
    )


def run(module: str, *arguments: str, seconds: float = 400.0) -> tuple[int, str, str]:
    """Runs `python -m launch.<module>`; its exit status, output and errors.

    Raises:
      TimeoutExpired: if it takes longer than `seconds`.
    """
    process = start(module, *arguments)
    output, errors = process.communicate(timeout=seconds)
    return process.returncode, output, errors
