"""What is done to a run: one fault after the other, in an order that a seed draws."""

import contextlib
import os
import pathlib
import random
import signal
import time
from collections.abc import Iterator

from testing.chaos_parts import descendants, watched_run

ACTORS = 4
_PARTS = ("actor", "learner", "replay", "evaluator", "hub", "driver", "Ray's head", "raylet")
POWER_CUT, HANG, FULL_DISK = "all processes killed at once", "a game hangs", "disk full"
_STOP_SECONDS = (5.0, 25.0)
_FULL_SECONDS = 20.0
KINDS = (
    *(f"{part} killed" for part in _PARTS),
    *(f"{part} stopped for {_STOP_SECONDS[0]:.0f} to {_STOP_SECONDS[1]:.0f} s" for part in _PARTS),
    POWER_CUT,
    HANG,
    FULL_DISK,
)


def draw(seed: int, only: str = "") -> Iterator[str]:
    """Kinds of faults without end: all that contain `only`, shuffled, then all again."""
    stream = random.Random(seed)
    kinds = [kind for kind in KINDS if only in kind]
    while kinds:
        yield from stream.sample(kinds, len(kinds))


class Injector:
    """Does it."""

    def __init__(self, run: watched_run.WatchedRun, hang_file: pathlib.Path, seed: int):
        """`hang_file`: that the run's games look for."""
        self._run = run
        self._hang_file = hang_file
        self._stream = random.Random(seed)

    def inject(self, kind: str) -> set[int]:
        """Does one fault, and waits while it lasts.

        Returns:
          Processes that were killed.

        Raises:
          LookupError: if there is no such process.
        """
        if kind == POWER_CUT:
            descendants.kill_all()
            self._run.reap()
            self._run.start()
            return set()
        if kind == HANG:
            self._hang_file.touch()
            deadline = time.monotonic() + 60
            while self._hang_file.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            return set()
        if kind == FULL_DISK:
            with _full(self._run.workdir.parent):
                time.sleep(_FULL_SECONDS)
            return set()
        part, _, what = kind.rpartition(" killed") if " killed" in kind else kind.partition(" stop")
        process = self._process_of(part)
        if kind.endswith("killed"):
            descendants.send(process, signal.SIGKILL)
            return {process}
        descendants.send(process, signal.SIGSTOP)
        time.sleep(self._stream.uniform(*_STOP_SECONDS))
        descendants.send(process, signal.SIGCONT)
        return set()

    def _process_of(self, part: str) -> int:
        name = f"actor_{self._stream.randrange(ACTORS):02d}" if part == "actor" else part
        process = self._run.process_of(name)
        if not process:
            raise LookupError(f"there is no process of {name}")
        return process


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
