"""What is done to a run: one fault after the other, in an order that a seed draws."""

import contextlib
import os
import pathlib
import random
import re
import signal
import time
from collections.abc import Iterator

from tools.chaos import descendants, link_cuts, watched_run

ACTORS = 4
_PARTS = ("actor", "learner", "replay", "evaluator", "hub", "driver", "Ray's head", "raylet")
POWER_CUT, HANG, FULL_DISK = "all processes killed at once", "a game hangs", "disk full"
_ENDS_COMMAND = ("driver", "Ray's head", "raylet")  # Kubernetes, Slurm or systemd repeats it.
_END_SECONDS = 120.0
_STOP_SECONDS = (5.0, 25.0)
_FULL_SECONDS = 20.0
_CUT_SECONDS = 60.0
_HANG_SECONDS = 60.0  # until a game looks
LINK_CUT = f"a machine of actors cut off for {_CUT_SECONDS:.0f} s"  # needs two machines
_KILLED = " killed"
_STOPPED = f" stopped for {_STOP_SECONDS[0]:.0f} to {_STOP_SECONDS[1]:.0f} s"
_WHOLE = (POWER_CUT, HANG, FULL_DISK, LINK_CUT)
KINDS = (
    *(part + how for part in _PARTS for how in (_KILLED, _STOPPED)),
    POWER_CUT,
    HANG,
    FULL_DISK,
)


def draw(seed: int, only: str = "") -> Iterator[str]:
    """Kinds of faults without end: all that match `only`, shuffled, then all again."""
    stream = random.Random(seed)
    kinds = [kind for kind in KINDS if re.search(only, kind)]
    while kinds:
        yield from stream.sample(kinds, len(kinds))


class Injector:
    """Does it."""

    def __init__(
        self,
        run: watched_run.WatchedRun,
        hang_file: pathlib.Path,
        seed: int,
        machines: link_cuts.Machines | None,
    ):
        """`hang_file`: that the run's games look for."""
        self._run = run
        self._machines = machines
        self._hang_file = hang_file
        self._stream = random.Random(seed)

    def inject(self, kind: str) -> tuple[str, int] | None:
        """Does one fault, and waits while it lasts.

        Returns:
          What was killed alone, if that is what was done: a part and its process.

        Raises:
          LookupError: if there is no such process.
        """
        if kind not in _WHOLE:
            return self._hurt_process(kind)
        if kind == POWER_CUT:
            descendants.kill_all()
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
        else:
            self._machines.cut(_CUT_SECONDS)
        return None

    def _hurt_process(self, kind: str) -> tuple[str, int] | None:
        part = kind.rpartition(_KILLED)[0] or kind.partition(_STOPPED)[0]
        if part == "actor":
            part = f"actor_{self._stream.randrange(ACTORS):02d}"
        process = self._run.process_of(part)
        if not process:
            raise LookupError(f"there is no process of {part}")
        if kind.endswith(_KILLED):
            descendants.send(process, signal.SIGKILL)
            if part in _ENDS_COMMAND:
                self._run.wait(_END_SECONDS)
                self._run.start()
                return None
            return part, process
        descendants.send(process, signal.SIGSTOP)
        time.sleep(self._stream.uniform(*_STOP_SECONDS))
        descendants.send(process, signal.SIGCONT)
        return None

    def is_replaced(self, killed: tuple[str, int] | None) -> bool:
        """Whether what was killed has another process."""
        return not killed or self._run.process_of(killed[0]) not in (0, killed[1])


@contextlib.contextmanager
def _full(folder: pathlib.Path) -> Iterator[None]:
    """Takes all of a small file system's room."""
    ballast = folder / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(os.statvfs(folder).f_bsize))
        yield
    finally:
        ballast.unlink()
