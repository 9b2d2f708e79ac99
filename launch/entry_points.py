"""The commands of an installed package: `laser-train` is `python -m launch.train`.

pip installs `launch` and `configs` inside laser_tf (see setup.py), because names so common would
conflict with other packages at the top of site-packages. Only this file is imported from there. It
makes both importable under their names and runs the command as `python -m` does.
"""

import os
import pathlib
import runpy
import signal
import sys


def main() -> None:
    """Runs the command that the program is named after."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # see launch/__init__.py
    command = pathlib.Path(sys.argv[0]).name.removeprefix("laser-").replace("-", "_")
    folder = str(pathlib.Path(__file__).resolve().parents[1])
    # With the current folder, as `python -m` has it, for environments of the user's own.
    sys.path[:0] = [folder, ""]
    inherited = os.environ.get("PYTHONPATH")  # by the processes that commands start
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{inherited}" if inherited else folder
    runpy.run_module(f"launch.{command}", run_name="__main__", alter_sys=True)
