"""A command that is kept alive: it runs in a child process, which is started again where it dies.

Ray ends the process that drives a run when its head dies, without asking. What the run has saved is
in its folder, so that the same command goes on.
"""

import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NoReturn

from laser_tf import errors
from laser_tf.host import interruption, terminal

_PIPE = "LASER_TF_KEPT_BY"  # environment variable: where a child says that it ends by itself
_YOUNG_SECONDS = 120.0
_MOST_FAILURES = 4  # in a row, each time young
_DELAY_SECONDS = 2.0
_PR_SET_PDEATHSIG = 1
_LIBRARY = ctypes.CDLL(None)  # loaded here: a forked child should take no locks


def is_child() -> bool:
    """Whether this process is one that `keep` has started."""
    return _PIPE in os.environ


class LostError(RuntimeError):
    """This process cannot go on, but another one in its place can."""


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Around all of a child's work: tells the parent that its end is no accident, unless it is."""
    try:
        yield
    except LostError as error:
        logging.warning("%s", errors.one_line(error))
        terminal.flush()
        os._exit(1)  # it is started again
    except interruption.Stopped as stopped:
        _tell_end()
        interruption.end_by(stopped.signal_number)
    except BaseException:
        _tell_end()
        raise
    _tell_end()


def _tell_end() -> None:
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
        preexec_fn=end_with_parent,
    )
    os.close(sender)
    forwarding = interruption.Forwarding(interrupted, child.send_signal)
    while child.poll() is None:
        forwarding.forward()
        time.sleep(0.1)
    os.set_blocking(receiver, False)
    try:
        is_end = os.read(receiver, 1) == b"e"
    except BlockingIOError:
        is_end = False  # processes of Ray's may hold the pipe still
    os.close(receiver)
    return child.returncode, is_end


def end_with_parent() -> None:
    """Has the system end this process, cleanly, when the one that started it has ended.

    For a child, before it becomes its command.
    """
    _LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _describe(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
