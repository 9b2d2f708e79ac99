"""Faults of a run, and the order in which they are injected."""

import contextlib
import os
import pathlib
import random
import signal
import time
from collections.abc import Iterator

from tools.chaos import link_cuts, processes, watched_run

ACTORS = 4
_ENDS_COMMAND = ("driver", "Ray's head", "raylet")  # Kubernetes, Slurm or systemd repeats it.
_PARTS = ("actor", "learner", "replay", "evaluator", "environment", "hub", *_ENDS_COMMAND)
_END_SECONDS = 120.0
_STOP_SECONDS = (5.0, 25.0)  # An environment that stops for 10 s counts as one that hangs.
_FULL_SECONDS = 20.0
_CUT_SECONDS = 60.0
POWER_CUT, FULL_DISK = "all processes killed at once", "disk full"
LINK_CUT = f"a machine of actors cut off for {_CUT_SECONDS:.0f} s"  # Requires two machines.
_KILLED = " killed"
_STOPPED = f" stopped for {_STOP_SECONDS[0]:.0f} to {_STOP_SECONDS[1]:.0f} s"
KINDS = *(part + how for part in _PARTS for how in (_KILLED, _STOPPED)), POWER_CUT, FULL_DISK


def shuffle(seed: int) -> Iterator[str]:
    """Yields faults without end: all kinds in a random order, then all again."""
    stream = random.Random(seed)
    while True:
        yield from stream.sample(KINDS, len(KINDS))


def inject(
    kind: str,
    run: watched_run.WatchedRun,
    stream: random.Random,
    machines: link_cuts.Machines | None,
) -> tuple[str, int] | None:
    """Injects a fault and blocks while it lasts; only `LINK_CUT` needs machines.

    Returns the part of the run whose process must be replaced, and the process; None: no part.
    Raises LookupError if the process does not exist.
    """
    if kind == POWER_CUT:
        processes.kill_all()
        run.process.wait()
        run.start()
    elif kind == FULL_DISK:
        with _full(run.workdir.parent):
            time.sleep(_FULL_SECONDS)
    elif kind == LINK_CUT:
        machines.cut(_CUT_SECONDS)
    else:
        return _hurt_process(kind, run, stream)
    return None


def _hurt_process(
    kind: str, run: watched_run.WatchedRun, stream: random.Random
) -> tuple[str, int] | None:
    part = kind.removesuffix(_KILLED).removesuffix(_STOPPED)
    if part == "actor":
        part = f"actor_{stream.randrange(ACTORS):02d}"
    process = run.process_of(part)
    if not process:
        raise LookupError(f"{part} has no process")
    if not kind.endswith(_KILLED):
        processes.send(process, signal.SIGSTOP)
        time.sleep(stream.uniform(*_STOP_SECONDS))
        processes.send(process, signal.SIGCONT)
        return None
    processes.send(process, signal.SIGKILL)
    if part not in _ENDS_COMMAND:
        return part, process
    run.process.wait(_END_SECONDS)
    run.start()
    return None


@contextlib.contextmanager
def _full(folder: pathlib.Path) -> Iterator[None]:
    """Fills a small file system."""
    ballast = folder / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(os.statvfs(folder).f_bsize))
        yield
    finally:
        ballast.unlink()
