"""A run of `launch.train`, seen from outside: its processes and checkpoints."""

import csv
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from laser_tf.cluster import fleet, role_process
from laser_tf.workdir import run_directory
from tools.chaos import processes

_NEW_SECONDS = 5.0  # Max age of a report of a role or the driver.
_READY = {"learner": "running", "replay": "running"}  # Other roles: any status but these.
_NOT_READY = ("", "starting", "failed", "stopped")
# Command lines of processes that are no roles.
_COMMANDS = {
    "environment": r"\bworker_pool\.serve\b",
    "hub": r"^ray::RunState\b",
    "Ray's head": r"\bgcs_server\b",
    "raylet": r"/raylet\b",
}


class EndedError(RuntimeError):
    """The command has ended unexpectedly."""


class WatchedRun:
    """A run directory and the command, with flags of `launch.train`, that works in it."""

    process: subprocess.Popen  # Of the command; set by `start`.

    def __init__(
        self,
        workdir: pathlib.Path,
        log: pathlib.Path,
        *arguments: str,
        python: Sequence[str] = (sys.executable,),
    ):
        self.workdir = workdir
        self._log = log
        self._has_own_ray = not any("cluster.address=" in argument for argument in arguments)
        self._command = [*python, "-m", "launch.train", f"--workdir={workdir}", *arguments]

    def start(self) -> None:
        """Starts the command."""
        self.process = processes.start(self._command, self._log)

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Returns whether a condition holds in time; raises EndedError if the command ends."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                raise EndedError(f"launch.train has ended with {self.process.returncode}")
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def roles(self) -> dict[str, dict[str, str]]:
        """Returns the row of each role in `roles.csv`; {} if the file is old or missing."""
        return self._read_roles()[1]

    def _read_roles(self) -> tuple[float, dict[str, dict[str, str]]]:
        path = self.workdir / fleet.ROLES
        try:
            written = path.stat().st_mtime
            rows = csv.DictReader(path.read_text().splitlines())
        except OSError:
            return 0.0, {}
        is_new = time.time() - written < _NEW_SECONDS
        return written, {row["role"]: row for row in rows} if is_new else {}

    def process_of(self, part: str) -> int:
        """Returns the process of a role or of another part; 0 if it has none."""
        if part == "driver":
            return self.process.pid
        if part not in _COMMANDS:
            return int(self.roles().get(part, {}).get("pid") or 0)
        for process in processes.find():
            if re.search(_COMMANDS[part], " ".join(process.cmdline())):
                return process.pid
        return 0

    def is_well(self, since: float = 0.0) -> bool:
        """Returns whether every role works and has reported recently, and after a time."""
        written, rows = self._read_roles()
        are_ready = bool(rows) and all(
            row["status"] == _READY.get(row["role"], row["status"])
            and row["status"] not in _NOT_READY
            and float(row["silent_seconds"] or 1e9) < min(_NEW_SECONDS, written - since)
            for row in rows.values()
        )
        if not are_ready:
            return False
        # The processes of a driver that has died, or whose Ray has died, are about to end.
        found = processes.find(of=self.process.pid if self._has_own_ray else None)
        numbers = {process.pid for process in found}
        return all(int(row["pid"] or 0) in numbers for row in rows.values())

    def newest_checkpoint(self) -> int:
        """Returns the updates of the newest saved weights; 0 without any."""
        paths = (self.workdir / run_directory.LEARNER_CHECKPOINTS).glob("checkpoint-*.index")
        return max((int(re.search(r"(\d+)\.index", path.name)[1]) for path in paths), default=0)

    def resumed_at(self) -> list[int]:
        """Returns the updates at which learners have resumed, in order."""
        path = self.workdir / role_process.LOGS / "learner.log"
        text = path.read_text(errors="replace") if path.exists() else ""
        found = re.findall(r"Resumed at [\d,]+ frames, ([\d,]+) updates", text)
        return [int(number.replace(",", "")) for number in found]
