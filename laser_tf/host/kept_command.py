"""A command that is kept alive: it runs in a child process, which is started again where it dies.

Ray ends the process that drives a run when its head dies, without asking. What the run has saved is
in its folder, so that the same command goes on.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from laser_tf.host import interruption, supervisor

_PIPE = "LASER_TF_KEPT_BY"  # environment variable: where a child says that it ends by itself
_YOUNG_SECONDS = 120.0
_MOST_FAILURES = 4  # in a row, each time young
_DELAY_SECONDS = 2.0


def is_child() -> bool:
    """Whether this process is one that `keep` has started."""
    return _PIPE in os.environ


def tell_end() -> None:
    """Tells the parent that what comes is no accident."""
    if is_child():
        os.write(int(os.environ[_PIPE]), b"e")


def keep(arguments: Sequence[str]) -> NoReturn:
    """Runs this very command in a child process until it ends by itself, and ends as it did.

    Args:
      arguments: what each child is given beside this process's own.
    """
    interrupted = interruption.Interruption()
    failures = 0
    while True:
        started = time.monotonic()
        code, is_end = _run_child(arguments, interrupted)
        if is_end or interrupted.stop:
            break
        failures = failures + 1 if time.monotonic() - started < _YOUNG_SECONDS else 1
        if failures >= _MOST_FAILURES:
            logging.error("error: the run's driver died %d times at once: given up", failures)
            code = 1
            break
        logging.warning("the run's driver has died (%s): it is started again", _describe(code))
        time.sleep(_DELAY_SECONDS)
    if code < 0:
        interruption.end_by(-code)
    os._exit(code)


def _run_child(
    arguments: Sequence[str], interrupted: interruption.Interruption
) -> tuple[int, bool]:
    """Returns the child's exit code, and whether it said that it ends."""
    receiver, sender = os.pipe()
    child = subprocess.Popen(
        [sys.executable, *sys.orig_argv[1:], *arguments],
        env=os.environ | {_PIPE: str(sender)},
        pass_fds=(sender,),
        start_new_session=True,  # Ctrl-C reaches it by way of this process alone
        preexec_fn=supervisor.end_with_parent,
    )
    os.close(sender)
    sent = 0
    while child.poll() is None:
        if interrupted.count > sent:
            sent = interrupted.count
            child.send_signal(interrupted.signal_number)
        time.sleep(0.1)
    os.set_blocking(receiver, False)
    try:
        is_end = os.read(receiver, 1) == b"e"
    except BlockingIOError:
        is_end = False  # processes of Ray's may hold the pipe still
    os.close(receiver)
    return child.returncode, is_end


def _describe(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
