"""A run of `launch.train`, seen from outside: its processes, checkpoints and memory."""

import csv
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from laser_tf.cluster import fleet, role_process
from laser_tf.workdir import layout
from tools.chaos import descendants

_NEW_SECONDS = 5.0  # for a report of a role or the driver
_SAMPLE_SECONDS = 5.0
_READY = {"learner": "running", "replay": "running"}  # Other roles: any status but these.
_NOT_READY = ("", "starting", "failed", "stopped")


class EndedError(RuntimeError):
    """The command has ended by itself."""


class WatchedRun:
    """One folder, and the command that works in it."""

    def __init__(
        self,
        workdir: pathlib.Path,
        log: pathlib.Path,
        *arguments: str,
        python: Sequence[str] = (sys.executable,),
    ):
        """`arguments` are those of `launch.train`, whose output is appended to `log`."""
        self.workdir = workdir
        self.memory: list[tuple[float, str, int, float]] = []  # time, role, process, MiB
        self._next_sample = 0.0
        self._log = log
        self._has_own_ray = not any("cluster.address=" in argument for argument in arguments)
        self._command = [*python, "-m", "launch.train", f"--workdir={workdir}", *arguments]
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Starts the command, for the first time or again."""
        self._process = descendants.start(self._command, self._log)

    @property
    def has_ended(self) -> bool:
        """Whether the command is over."""
        return self._process.poll() is not None

    def end(self, seconds: float) -> int:
        """Asks the run to end, and waits; returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds: float) -> int:
        """Waits for the end; returns the exit code."""
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self._command, seconds)
            self.sample_memory()
            time.sleep(0.2)
        return self._process.returncode

    def reap(self) -> None:
        """Waits for a command that was killed."""
        self._process.wait()

    def roles(self) -> dict[str, dict[str, str]]:
        """What the driver says of each role; nothing where the driver says nothing."""
        return self._read_roles()[1]

    def _read_roles(self) -> tuple[float, dict[str, dict[str, str]]]:
        """When the driver has said it last, and what."""
        path = self.workdir / fleet.ROLES
        try:
            said = path.stat().st_mtime
            rows = csv.DictReader(path.read_text().splitlines())
        except OSError:
            return 0.0, {}
        is_new = time.time() - said < _NEW_SECONDS
        return said, {row["role"]: row for row in rows} if is_new else {}

    def process_of(self, part: str) -> int:
        """The number of a role's process, or of another part's; 0 where there is none."""
        if part == "driver":
            return self._process.pid
        if part in _COMMANDS:
            found = [p for p in descendants.find() if re.search(_COMMANDS[part], p.command)]
        else:
            return int(self.roles().get(part, {}).get("process") or 0)
        return found[0].number if found else 0

    def is_well(self, since: float = 0.0) -> bool:
        """Whether every role works, and has reported just now, and since a time."""
        said, rows = self._read_roles()
        are_ready = bool(rows) and all(
            row["status"] == _READY.get(row["role"], row["status"])
            and row["status"] not in _NOT_READY
            and float(row["silent_seconds"] or 1e9) < min(_NEW_SECONDS, said - since)
            for row in rows.values()
        )
        if not are_ready:
            return False
        # Those of a driver that has died, or whose Ray has, are about to end.
        processes = descendants.find(of=self._process.pid if self._has_own_ray else None)
        numbers = {process.number for process in processes}
        return all(int(row["process"] or 0) in numbers for row in rows.values())

    def newest_checkpoint(self) -> int:
        """Updates behind the newest weights that are saved; 0 without any."""
        paths = (self.workdir / layout.LEARNER_CHECKPOINTS).glob("checkpoint-*.index")
        return max((int(re.search(r"(\d+)\.index", path.name)[1]) for path in paths), default=0)

    def checkpoint_age(self, number: int) -> float:
        """Seconds since a checkpoint was written."""
        path = self.workdir / layout.LEARNER_CHECKPOINTS / f"checkpoint-{number}.index"
        try:
            return time.time() - path.stat().st_mtime
        except OSError:
            return 0.0

    def resumed_at(self) -> list[int]:
        """Updates at which learners' processes have resumed, in order."""
        path = self.workdir / role_process.LOGS / "learner.log"
        text = path.read_text(errors="replace") if path.exists() else ""
        found = re.findall(r"Resumed at [\d,]+ frames, ([\d,]+) updates", text)
        return [int(number.replace(",", "")) for number in found]

    def sample_memory(self) -> None:
        """Notes what roles need, now and then."""
        now = time.time()
        if now < self._next_sample:
            return
        self._next_sample = now + _SAMPLE_SECONDS
        for role, row in self.roles().items():
            if row["process"] and float(row["memory_mebibytes"] or 0):
                memory = float(row["memory_mebibytes"])
                self.memory.append((now, role, int(row["process"]), memory))

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Whether it comes to hold in time.

        Raises:
          EndedError: if the command ends before.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if self.has_ended:
                raise EndedError(f"launch.train has ended with {self._process.returncode}")
            if time.monotonic() > deadline:
                return False
            self.sample_memory()
            time.sleep(0.2)
        return True


# Beside the roles, by their command lines.
_COMMANDS = {
    "hub": r"^ray::RunState\b",
    "Ray's head": r"\bgcs_server\b",
    "raylet": r"/raylet\b",
}
