"""Base of the configurations of all suites."""

import dataclasses
from typing import Any, ClassVar

from laser_tf import config_checks, errors
from laser_tf.environments import base

TOO_MANY_THREADS = "more threads are not faster"
_MAX_REPLY_SECONDS = 86_400.0  # A day; waits must be finite.


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvironmentConfig:
    """Configuration of the environments of a run; each suite has a subclass with its own keys.

    Raises:
      ImportError: If only a package that is not installed knows the tasks of the suite.
      ValueError: For a value out of range or an unknown name; the message names the remedy.
    """

    suite: str  # whose keys these are, e.g. atari or gymnasium; all are in environments.suites
    task: str  # of the suite, several with commas between them, or "all" of it
    num_envs: int = 32  # environments; of each task, played at once
    max_broken_episodes: int = 20  # episodes; of one of them in a row (NaN, a crash), then it ends
    reward_scales: tuple[float, ...] = ()  # factors; of each task's rewards; (): all 1
    action_repeat: int = 1  # env frames; an agent step; their rewards add up
    max_frames_per_episode: int = 0  # env frames; then the episode is cut; 0: by itself alone

    frames_per_second: ClassVar[float] = 10.0  # Of videos, if the environment has no clock.

    def __post_init__(self):
        config_checks.check_types(self)
        try:
            tasks = self.tasks
        except ValueError as error:
            raise errors.ConfigError(f"task is {self.task!r}: {error}") from None
        if len(set(tasks)) < len(tasks):
            raise errors.ConfigError(f"task must name each task once, got {self.task!r}.")
        # The suite's own names, so that a run resumes by any name of its task.
        object.__setattr__(self, "task", self.task if self.task == "all" else ",".join(tasks))
        config_checks.check_range(self, "num_envs", 1, 100_000, "no process plays more of them")
        config_checks.check_range(self, "max_broken_episodes", 0)
        config_checks.check_range(self, "action_repeat", 1, 1_000, "an agent needs to act")
        config_checks.check_range(
            self, "max_frames_per_episode", 0, 2**31 - 1, "emulators count in 32 bits"
        )
        if self.reward_scales and len(self.reward_scales) != len(tasks):
            raise errors.ConfigError(
                f"reward_scales must have one number for each of {', '.join(tasks)}, got "
                f"{self.reward_scales}."
            )
        if not all(scale > 0 for scale in self.reward_scales):
            raise errors.ConfigError(f"reward_scales must be above 0, got {self.reward_scales}.")

    @property
    def tasks(self) -> tuple[str, ...]:
        """Returns the tasks by the suite's own names."""
        if self.task == "all":
            return self.all_tasks()
        return tuple(self.check_task(name.strip()) for name in self.task.split(","))

    def all_tasks(self) -> tuple[str, ...]:
        """Returns all tasks of the suite, if one agent can learn them all."""
        raise errors.ConfigError(f"the tasks of {self.suite} differ too much, name them")

    def check_task(self, task: str) -> str:
        """Returns the suite's own name of a task; ValueError for an unknown one."""
        raise NotImplementedError

    def user_code(self) -> tuple[str, ...]:
        """Returns the tasks that import modules outside this package."""
        return ()

    @property
    def max_steps_per_episode(self) -> int:
        """Agent steps of the longest episode; 0 if only the environment limits them."""
        return -(-self.max_frames_per_episode // self.action_repeat)

    @property
    def max_step_seconds(self) -> float:
        """Returns the time limit of a step of all environments; 0 if the suite has none."""
        return 0.0

    def protocol(self) -> dict[str, Any]:
        """Returns the part of an evaluation file that describes the episodes."""
        return {
            "action_repeat": self.action_repeat,
            "max_frames_per_episode": self.max_steps_per_episode * self.action_repeat or None,
        }

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> base.BatchedEnvironment:
        """Creates the environments of one task.

        Args:
          task: One of `tasks`.
          num_envs: N.
          seed: Environment i is seeded with `seed + i`.
          rendering: Whether `render` will be called.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmallConfig(EnvironmentConfig):
    """Configuration of small suites for tests and controlled experiments."""

    reward_offset: float = 0.0  # reward; added to each agent step

    def __post_init__(self):
        super().__post_init__()
        reason = "float32 would round the game's own rewards"
        config_checks.check_range(self, "reward_offset", -1_000, 1_000, reason)
        config_checks.check_range(self, "action_repeat", 1, 1, "each action moves one cell")

    def protocol(self) -> dict[str, Any]:
        """See `EnvironmentConfig`."""
        return super().protocol() | {"reward_offset": self.reward_offset}


def check_sticky_actions(probability: float) -> None:
    """Raises ValueError unless a probability is below 1."""
    if not 0 <= probability < 1:
        raise errors.ConfigError(f"sticky_actions must be from 0 to below 1, got {probability}.")


def check_reply_seconds(seconds: float) -> None:
    """Raises ValueError for a time limit out of range."""
    if not 0 < seconds <= _MAX_REPLY_SECONDS:
        raise errors.ConfigError(
            f"reply_seconds must be above 0 and at most {_MAX_REPLY_SECONDS:g}, got {seconds}."
        )
