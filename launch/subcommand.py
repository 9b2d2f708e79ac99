"""Another of launch's commands, run from a command."""

import logging
import subprocess
import sys

from laser_tf.host import interruption, kept_command
from launch import command_line


def run(module: str, *arguments: str) -> None:
    """Runs `python -m launch.<module>`, and forwards what asks to end; then it does not return.

    Args:
      module: e.g. "train".
      *arguments: its flags.

    Raises:
      UsageError: if the command fails.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", f"launch.{module}", *arguments],
        stdin=subprocess.DEVNULL,
        # A group of its own: it gets each Ctrl-C once, from here, and has the time to save all.
        start_new_session=True,
        preexec_fn=kept_command.end_with_parent,
    )
    interrupted = []

    def forward(signal_number: int, _: object) -> None:
        interrupted.append(signal_number)
        process.send_signal(signal_number)

    interruption.take_over(forward)
    code = process.wait()
    if interrupted:
        logging.info("stopped; the same command goes on")
        interruption.end_by(interrupted[0])
    if code:
        raise command_line.UsageError(
            f"launch.{module} ended with {code}: see above; the same command goes on"
        )
