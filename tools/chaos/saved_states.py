"""What a run on one process has saved where it is killed while it saves, or files are damaged."""

import pathlib
import random
import re
import shutil
import time

from configs import laser
from laser_tf.environments import factory
from laser_tf.replay import table_checkpoint
from laser_tf.training import assembly, learner_checkpoints, run_config
from laser_tf.workdir import layout
from tools.chaos import descendants, outcomes, watched_run

_FLAGS = (
    "--config=configs/laser.py:catch",
    "--config.run.env_frames=1000000000",
    "--config.run.evaluation_episodes=0",
)
ALWAYS, OFTEN = 1e-4, 0.02  # minutes between checkpoints: it saves all the time, now and then
_LONGEST_SECONDS = 3.0  # of saving before the power is cut
_CUT = "power cut while saving"
_REPLAY = layout.REPLAY_CHECKPOINT
_PARTS = (layout.LEARNER_CHECKPOINTS, _REPLAY)


class SavedStates:
    """One folder, whose run is killed and resumed again and again."""

    def __init__(self, folder: pathlib.Path, seed: int, patience: float, minutes: float):
        """Makes the folder.

        Args:
          folder: a new one.
          seed: of when and what.
          patience: seconds that a resumed run may need for its first checkpoint.
          minutes: from one checkpoint to the next.
        """
        self.outcomes: list[outcomes.Outcome] = []
        self.violations: list[str] = []
        folder.mkdir()
        self._workdir = folder / "run"
        self._log = folder / "train.log"
        self._patience = patience
        self._stream = random.Random(seed)
        self._periods = [
            f"--config.run.{what}_minutes={minutes}" for what in ("checkpoint", "replay_checkpoint")
        ]
        config = run_config.parse(laser.get_config("catch").to_dict())
        spec = factory.environment_spec(config.environment)
        learner = assembly.build_learner(config, spec, "float32", jit=False)
        self._counters = learner.counters
        self._checkpoints = learner_checkpoints.LearnerCheckpoints(
            self._workdir / layout.LEARNER_CHECKPOINTS, learner
        )

    def cut_power(self, times: int) -> None:
        """Kills the run at random points of saving, and looks whether it can be resumed."""
        for _ in range(times):
            outcome = outcomes.Outcome(_CUT, time.time())
            saved = self._run(outcome)
            self.outcomes.append(outcome)
            self._check(saved)

    def _run(self, outcome: outcomes.Outcome) -> int:
        """Lets the run resume, save and be killed; returns the updates of its newest checkpoint."""
        run = watched_run.WatchedRun(self._workdir, self._log, *_FLAGS, *self._periods)
        before, began = run.newest_checkpoint(), time.monotonic()
        run.start()
        try:
            is_saving = run.wait_until(
                lambda: run.newest_checkpoint() > before and self._has_one_before(), self._patience
            )
        except watched_run.EndedError as error:
            self.violations.append(f"{outcome.fault}: {error}; see {self._log}")
            return before
        if is_saving:
            outcome.seconds = time.monotonic() - began
        else:
            self.violations.append(f"{outcome.fault}: saves nothing in {self._patience:.0f} s")
        time.sleep(self._stream.uniform(0, _LONGEST_SECONDS))
        descendants.kill_all()
        run.reap()
        return run.newest_checkpoint()

    def _has_one_before(self) -> bool:
        return len(self._checkpoints.numbers()) > 1 and self._replay() is not None

    def _replay_folders(self) -> list[pathlib.Path]:
        folder = self._workdir / _REPLAY
        return [folder, folder.with_name(f"{folder.name}_previous")]

    def _replay(self) -> pathlib.Path | None:
        found = map(table_checkpoint.find, self._replay_folders())
        return next((checkpoint for checkpoint in found if checkpoint), None)

    def _check(self, saved: int) -> None:
        """Notes where the newest weights or replay cannot be restored."""
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
        """Damages a saved file before each start, which has to say so in one line, and to go on."""
        self._run(outcomes.Outcome("a run that is to be damaged", time.time()))
        for _ in range(times):
            # While replay is saved there is no one before.
            has_both = all(map(table_checkpoint.find, self._replay_folders()))
            part = self._stream.choice(_PARTS) if has_both else layout.LEARNER_CHECKPOINTS
            path = self._draw_file(part)
            how, word = self._stream.choice([(_truncate, "truncated"), (_alter, "altered")])
            outcome = outcomes.Outcome(f"{_kind(path)} {word}", time.time())
            self.outcomes.append(outcome)
            shutil.copy(path, self._log.with_name("original"))
            how(path, self._stream)
            logged = self._log.stat().st_size if self._log.exists() else 0
            self._run(outcome)
            lines = self._log.read_text(errors="replace")[logged:].splitlines()
            # The one before may have been damaged as well, by an earlier fault.
            name = path.name.partition(".")[0] if part == layout.LEARNER_CHECKPOINTS else "replay"
            told = [line for line in lines if re.search(rf"damaged checkpoint \S*/{name}: ", line)]
            if len(told) != 1:
                self.violations.append(f"{outcome.fault}: it was told as {told}")

    def _draw_file(self, part: str) -> pathlib.Path:
        if part == _REPLAY:
            paths = list(table_checkpoint.find(self._workdir / _REPLAY).iterdir())
        else:
            newest = self._checkpoints.numbers()[-1]
            # A damaged count of rows does not make a checkpoint unusable.
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
