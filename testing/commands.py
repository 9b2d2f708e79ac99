"""Starts the project's commands as a user would."""

import os
import subprocess
import sys
import tempfile


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
