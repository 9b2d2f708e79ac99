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
_PARTS = ("actor", "learner", "replay", "evaluator", "hub", "driver", "Ray's head", "raylet")
POWER_CUT, HANG, FULL_DISK = "all processes killed at once", "a game hangs", "disk full"
_ENDS_COMMAND = ("driver", "Ray's head", "raylet")  # Kubernetes, Slurm or systemd repeats it.
_END_SECONDS = 120.0
_STOP_SECONDS = (5.0, 25.0)
_FULL_SECONDS = 20.0
_CUT_SECONDS = 60.0
_HANG_SECONDS = 60.0  # Until an environment finds the file.
LINK_CUT = f"a machine of actors cut off for {_CUT_SECONDS:.0f} s"  # Requires two machines.
_KILLED = " killed"
_STOPPED = f" stopped for {_STOP_SECONDS[0]:.0f} to {_STOP_SECONDS[1]:.0f} s"
KINDS = (
    *(part + how for part in _PARTS for how in (_KILLED, _STOPPED)),
    POWER_CUT,
    HANG,
    FULL_DISK,
)


def shuffle(seed: int) -> Iterator[str]:
    """Yields faults without end: all kinds in a random order, then all again."""
    stream = random.Random(seed)
    while True:
        yield from stream.sample(KINDS, len(KINDS))


class Injector:
    """Injects faults into a run."""

    def __init__(
        self,
        run: watched_run.WatchedRun,
        hang_file: pathlib.Path,
        seed: int,
        machines: link_cuts.Machines | None,
    ):
        """Stores the arguments.

        Args:
          run: The run.
          hang_file: File that makes one of its environments hang.
          seed: Seed of the details.
          machines: Machines of the run, for `LINK_CUT`.
        """
        self._run = run
        self._machines = machines
        self._hang_file = hang_file
        self._stream = random.Random(seed)

    def inject(self, kind: str) -> tuple[str, int] | None:
        """Injects a fault and blocks while it lasts.

        Returns:
          The part of the run whose process must be replaced, and the process; None: no part.

        Raises:
          LookupError: If the process does not exist.
        """
        if kind == POWER_CUT:
            processes.kill_all()
            self._run.reap()
            self._run.start()
        elif kind == HANG:
            self._hang_file.touch()
            deadline = time.monotonic() + _HANG_SECONDS
            while self._hang_file.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
        elif kind == FULL_DISK:
            with _full(self._run.workdir.parent):
                time.sleep(_FULL_SECONDS)
        elif kind == LINK_CUT:
            self._machines.cut(_CUT_SECONDS)
        else:
            return self._hurt_process(kind)
        return None

    def _hurt_process(self, kind: str) -> tuple[str, int] | None:
        part = kind.removesuffix(_KILLED).removesuffix(_STOPPED)
        if part == "actor":
            part = f"actor_{self._stream.randrange(ACTORS):02d}"
        process = self._run.process_of(part)
        if not process:
            raise LookupError(f"{part} has no process")
        if not kind.endswith(_KILLED):
            processes.send(process, signal.SIGSTOP)
            time.sleep(self._stream.uniform(*_STOP_SECONDS))
            processes.send(process, signal.SIGCONT)
            return None
        processes.send(process, signal.SIGKILL)
        if part not in _ENDS_COMMAND:
            return part, process
        self._run.wait(_END_SECONDS)
        self._run.start()
        return None

    def is_replaced(self, killed: tuple[str, int] | None) -> bool:
        """Returns whether the part of a killed process has another process."""
        return not killed or self._run.process_of(killed[0]) not in (0, killed[1])


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
