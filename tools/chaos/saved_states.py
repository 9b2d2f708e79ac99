"""Saved states of a run that is killed while it saves, or whose files are damaged."""

import pathlib
import random
import re
import shutil
import time

from configs import laser
from laser_tf.environments import factory
from laser_tf.replay import table_checkpoint
from laser_tf.training import assembly, learner_checkpoints, run_config
from laser_tf.workdir import run_directory
from tools.chaos import disturbed_run, processes, results, watched_run

_FLAGS = (
    "--config=configs/laser.py:catch",
    "--config.run.env_frames=1000000000",
    "--config.run.evaluation_episodes=0",
)
ALWAYS, OFTEN = 1e-4, 0.02  # Minutes between two checkpoints.
_LONGEST_SECONDS = 3.0  # Of saving before the power cut.
_CUT = "power cut while saving"
_REPLAY = run_directory.REPLAY_CHECKPOINT
_PARTS = (run_directory.LEARNER_CHECKPOINTS, _REPLAY)


class SavedStates:
    """A run directory whose run is killed and resumed again and again."""

    def __init__(self, folder: pathlib.Path, seed: int, minutes: float):
        """Creates the new directory; `minutes` pass between two checkpoints."""
        self.outcomes: list[results.Outcome] = []
        self.violations: list[str] = []
        folder.mkdir()
        self._workdir = folder / "run"
        self._log = folder / "train.log"
        self._stream = random.Random(seed)
        self._periods = [
            f"--config.run.{what}_minutes={minutes}" for what in ("checkpoint", "replay_checkpoint")
        ]
        config = run_config.parse(laser.get_config("catch").to_dict())
        spec = factory.environment_spec(config.environment)
        learner = assembly.build_learner(config, spec, "float32", jit=False)
        self._counters = learner.counters
        self._checkpoints = learner_checkpoints.LearnerCheckpoints(
            self._workdir / run_directory.LEARNER_CHECKPOINTS, learner
        )

    def cut_power(self, times: int) -> None:
        """Kills the run at random times while it saves, and checks the saved state."""
        for _ in range(times):
            outcome = results.Outcome(_CUT, time.time())
            saved = self._run(outcome)
            self.outcomes.append(outcome)
            self._check(saved)

    def _run(self, outcome: results.Outcome) -> int:
        """Resumes the run and kills it; returns the updates of its newest checkpoint."""
        run = watched_run.WatchedRun(self._workdir, self._log, *_FLAGS, *self._periods)
        before, began = run.newest_checkpoint(), time.monotonic()
        run.start()
        try:
            is_saving = run.wait_until(
                lambda: run.newest_checkpoint() > before and self._has_previous(),
                disturbed_run.PATIENCE_SECONDS,
            )
        except watched_run.EndedError as error:
            self.violations.append(f"{outcome.fault}: {error}; see {self._log}")
            return before
        if is_saving:
            outcome.seconds = time.monotonic() - began
        else:
            self.violations.append(f"{outcome.fault}: the resumed run saves nothing")
        time.sleep(self._stream.uniform(0, _LONGEST_SECONDS))
        processes.kill_all()
        run.process.wait()
        return run.newest_checkpoint()

    def _has_previous(self) -> bool:
        return len(self._checkpoints.numbers()) > 1 and self._replay() is not None

    def _replay_folders(self) -> list[pathlib.Path]:
        folder = self._workdir / _REPLAY
        return [folder, folder.with_name(f"{folder.name}_previous")]

    def _replay(self) -> pathlib.Path | None:
        found = map(table_checkpoint.find, self._replay_folders())
        return next((checkpoint for checkpoint in found if checkpoint), None)

    def _check(self, saved: int) -> None:
        """Records a violation if the newest weights or replay cannot be restored."""
        try:
            restored = self._checkpoints.restore()
            updates = int(self._counters.learner_updates.numpy())
            if not restored == updates == saved:
                self.violations.append(
                    f"{_CUT}: restored {restored}, {updates} updates; {saved} were saved"
                )
            if not sum(table_checkpoint.verify(self._replay()).values()):
                self.violations.append(f"{_CUT}: an empty replay was saved")
        except ValueError as error:
            self.violations.append(f"{_CUT}: {error}")

    def damage(self, times: int) -> None:
        """Damages a saved file before each start, which must log one line and resume."""
        self._run(results.Outcome("a run that is to be damaged", time.time()))
        for _ in range(times):
            # While replay is saved, there is no previous checkpoint.
            has_both = all(map(table_checkpoint.find, self._replay_folders()))
            part = self._stream.choice(_PARTS) if has_both else run_directory.LEARNER_CHECKPOINTS
            path = self._choose_file(part)
            how, word = self._stream.choice([(_truncate, "truncated"), (_alter, "altered")])
            outcome = results.Outcome(f"{_kind(path)} {word}", time.time())
            self.outcomes.append(outcome)
            shutil.copy(path, self._log.with_name("original"))
            how(path, self._stream)
            logged = self._log.stat().st_size if self._log.exists() else 0
            self._run(outcome)
            lines = self._log.read_text(errors="replace")[logged:].splitlines()
            # An earlier fault may have damaged the previous checkpoint, too.
            is_learner = part == run_directory.LEARNER_CHECKPOINTS
            name = path.name.partition(".")[0] if is_learner else "replay"
            logs = [line for line in lines if re.search(rf"damaged checkpoint \S*/{name}: ", line)]
            if len(logs) != 1:
                self.violations.append(f"{outcome.fault}: it was logged as {logs}")

    def _choose_file(self, part: str) -> pathlib.Path:
        if part == _REPLAY:
            paths = list(table_checkpoint.find(self._workdir / _REPLAY).iterdir())
        else:
            newest = self._checkpoints.numbers()[-1]
            # A checkpoint with a damaged count of rows is usable.
            found = (self._workdir / part).glob(f"checkpoint-{newest}.*")
            paths = [path for path in found if path.suffix != ".json"]
        return self._stream.choice(sorted(path for path in paths if path.stat().st_size))


def _kind(path: pathlib.Path) -> str:
    return re.sub(r"checkpoint-\d+", "checkpoint-N", path.name)


def _truncate(path: pathlib.Path, stream: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(stream.randrange(path.stat().st_size))


def _alter(path: pathlib.Path, stream: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[stream.randrange(len(data))] ^= 1 << stream.randrange(8)
    path.write_bytes(data)
