"""DMLab-30 (Beattie et al. 2016; Espeholt et al. 2018): thirty levels of DeepMind Lab."""

import dataclasses
import functools
import importlib.util
import pathlib
from typing import Any, ClassVar

import numpy as np
from dm_env import specs

from laser_tf import config_checks, errors, observations, types
from laser_tf.environments import (
    base,
    dmlab_game,
    dmlab_levels,
    environment_config,
    faults,
    instructions,
    names,
    worker_pool,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DMLabConfig(environment_config.EnvironmentConfig):
    """Configuration of DMLab-30's levels."""

    suite: str = "dmlab"
    task: str = "rooms_watermaze"
    max_frames_per_episode: int = 108_000  # env frames; then the episode is cut
    action_repeat: int = 4  # env frames; an agent step
    instruction_length: int = 16  # words; of the longest text; 0 reads none
    hold_out: bool = False  # play what is held out for testing
    level_cache: str = ""  # folder for compiled maps; "": none are kept
    dataset_path: str = ""  # folder of the images that two of psychlab's levels show
    reply_seconds: float = 120.0  # seconds; a game that takes longer is killed and started again

    frames_per_second: ClassVar[float] = 60.0

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "instruction_length", 0, 10_000, "no task shows more")
        environment_config.check_reply_seconds(self.reply_seconds)

    def all_tasks(self) -> tuple[str, ...]:
        """The thirty levels."""
        return dmlab_levels.LEVELS

    def check_task(self, task: str) -> str:
        """See `EnvironmentConfig`; names are those of training."""
        return names.check(
            "training level of DMLab-30", task, dmlab_levels.LEVELS, example="rooms_watermaze"
        )

    def protocol(self) -> dict[str, Any]:
        """See `EnvironmentConfig`."""
        return super().protocol() | {"hold_out": self.hold_out}

    @property
    def max_step_seconds(self) -> float:
        """See `EnvironmentConfig`: a failed game is restarted within the step."""
        return 2 * self.reply_seconds

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> "DMLab":
        """See `EnvironmentConfig`."""
        return DMLab(self, task, num_envs, seed)


class DMLab(base.BatchedEnvironment):
    """N games of a level, each in its own process; frames are uint8 [72, 96, 3].

    Actions are the 15 of `dmlab_game.ACTIONS`. Rewards are raw. A level ends by its clock, after
    some minutes of game time: as in IMPALA's code that is an episode's end, with discount 0. The
    engine shows nothing there, so that step repeats the frame and the text before it.
    """

    def __init__(self, config: DMLabConfig, task: str, num_envs: int, seed: int):
        """Starts the engines; game i samples the seeds of its episodes from `seed + i`.

        Args:
          config: Configuration.
          task: One of `dmlab_levels.LEVELS`.
          num_envs: N.
          seed: See above.

        Raises:
          ImportError: If DeepMind Lab is not installed.
          RuntimeError: If an engine does not start.
        """
        _check_engine()
        if config.level_cache:
            pathlib.Path(config.level_cache).mkdir(parents=True, exist_ok=True)
        level = dmlab_levels.level_to_play(task, config.hold_out)
        start = functools.partial(
            dmlab_game.Game,
            level=f"contributed/dmlab30/{level}",
            action_repeat=config.action_repeat,
            with_text=config.instruction_length > 0,
            settings=dmlab_levels.settings(config.hold_out, config.dataset_path),
            level_cache=config.level_cache,
        )
        self._games = worker_pool.WorkerPool(
            {
                f"{level}, game {i},": functools.partial(start, seed=seed + i)
                for i in range(num_envs)
            },
            config.reply_seconds,
        )
        self._instruction_length = config.instruction_length
        image = observations.image_spec(dmlab_game.HEIGHT, dmlab_game.WIDTH, 3)
        super().__init__(
            num_envs,
            action_repeat=config.action_repeat,
            observation={"image": image, "text": types.TextSpec(config.instruction_length)}
            if config.instruction_length
            else image,
            action=specs.DiscreteArray(len(dmlab_game.ACTIONS), name="action"),
        )

    def _reset(self) -> Any:
        self._steps = self._begun(self._games.call([("reset",)] * self.num_envs))
        return self._observation()

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        answers = self._games.call(
            [
                ("reset",) if starts else ("step", action)
                for starts, action in zip(is_first, actions.tolist(), strict=True)
            ]
        )
        has_failed = np.zeros(self.num_envs, bool)
        for index in np.flatnonzero(~is_first).tolist():
            if isinstance(answers[index], worker_pool.Failure):
                self._note_failure(index, answers[index])
                has_failed[index] = True
                # The result of this step is lost: the step before is the last of the episode.
                answers[index] = self._steps[index]._replace(reward=0.0)
        self._steps = self._begun(answers)
        terminated = np.array([step.terminated for step in self._steps])
        reward = np.array([step.reward for step in self._steps])
        return base.Transition(
            self._observation(), reward, 1.0 - terminated, terminated | has_failed
        )

    def _begun(self, answers: list[Any]) -> list[dmlab_game.Step]:
        """Returns the answers; games that could not start an episode start again."""
        while True:
            failed = [isinstance(answer, worker_pool.Failure) for answer in answers]
            if not any(failed):
                return answers
            for index in np.flatnonzero(failed).tolist():
                self._note_failure(index, answers[index])
            again = self._games.call([("reset",) if fails else None for fails in failed])
            answers = [
                new if fails else old
                for fails, new, old in zip(failed, again, answers, strict=True)
            ]

    def _note_failure(self, index: int, failure: worker_pool.Failure) -> None:
        self.faults.note(
            index, faults.RESTARTS, failure.reason + faults.STARTED_AGAIN, failure.details
        )

    def _observation(self) -> Any:
        frames = np.stack([step.frame for step in self._steps])
        if not self._instruction_length:
            return frames
        texts = [instructions.encode(step.text, self._instruction_length) for step in self._steps]
        return {"image": frames, "text": np.stack(texts)}

    def render(self, index: int) -> np.ndarray:
        """The frame itself, 72x96."""
        return self._steps[index].frame.copy()

    def close(self) -> None:
        """Ends the engines' processes."""
        super().close()
        self._games.close()


def _check_engine() -> None:
    if importlib.util.find_spec("deepmind_lab") is None:
        raise errors.MissingPackageError(
            "DeepMind Lab is not installed, and pip has no package of it: clone "
            "https://github.com/google-deepmind/lab, install what its docs/users/build.md lists "
            "(Bazel, a C++ compiler, SDL2, OSMesa, libffi, gettext, zip), run 'bazel build -c opt "
            "//python/pip_package:build_pip_package' against this environment's Python and NumPy, "
            "then './bazel-bin/python/pip_package/build_pip_package /tmp/dmlab' and 'pip install "
            "/tmp/dmlab/*.whl'"
        )
