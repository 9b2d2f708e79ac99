"""Base of the configurations of all suites."""

import abc
import dataclasses
from collections.abc import Collection
from typing import Any, ClassVar

from laser_tf import config_checks, config_values, errors
from laser_tf.environments import base


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvironmentConfig(abc.ABC):
    """Configuration of the environments of a run; each suite has a subclass with its own keys.

    Raises:
      ImportError: If only a package that is not installed knows the tasks of the suite.
      ValueError: For a value out of range or an unknown name; the message names the remedy.
    """

    suite: str  # name of a suite, e.g. atari or gymnasium, or my_module:MySuite
    task: str  # task of the suite, several separated by commas, or "all"
    num_envs: int = 32  # environments; per task, which step together
    max_broken_episodes: int = 20  # episodes; max that faults end in a row; more end the run
    reward_scales: tuple[float, ...] = ()  # factors; of the rewards of each task; (): all 1
    action_repeat: int = 1  # env frames; per agent step; their rewards add up
    max_frames_per_episode: int = 0  # env frames; limit that truncates an episode; 0: none

    frames_per_second: ClassVar[float] = 10.0  # Of videos of environments without a clock.
    known_tasks: ClassVar[Collection[str]] = ()  # Names of all tasks, see `check_task`.
    example_task: ClassVar[str] = ""  # Shown in the error for an unknown task; "" shows all.
    tasks_share_specs: ClassVar[bool] = False  # Whether one agent can learn the task "all".
    user_creates_batch: ClassVar[bool] = False  # Whether specs may depend on `num_envs`.

    def __post_init__(self):
        config_checks.check_types(self)
        tasks = self.tasks
        if len(set(tasks)) < len(tasks):
            raise errors.ConfigError(f"task must name each task once, got {self.task!r}.")
        # The suite's own names, so that a run resumes by any name of its task.
        object.__setattr__(self, "task", self.task if self.task == "all" else ",".join(tasks))
        config_checks.check_range(self, "num_envs", 1, 100_000, "no process steps more of them")
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
            if not self.tasks_share_specs:
                raise errors.ConfigError(
                    f"task must name tasks of {self.suite}, got 'all'. Name those that one agent "
                    "can learn together."
                )
            return tuple(self.known_tasks)
        return tuple(self.check_task(name.strip()) for name in self.task.split(","))

    def check_task(self, task: str) -> str:
        """Returns the suite's own name of a task; ValueError for an unknown one."""
        if not self.known_tasks:
            raise errors.ConfigError(
                f"task must be known to {self.suite}, got {task!r}. Set known_tasks of the suite's "
                "class, or override its check_task."
            )
        what = f"task of {self.suite}"
        return config_values.check_name(what, task, self.known_tasks, self.example_task)

    def user_code(self) -> tuple[str, ...]:
        """Returns the tasks that import modules outside this package."""
        return ()

    @property
    def max_steps_per_episode(self) -> int:
        """Returns the agent steps of the longest episode; 0 if only the environment limits them."""
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

    @abc.abstractmethod
    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> base.BatchedEnvironment:
        """Creates the environments of a task, environment i from `seed + i`.

        `render` may be called only if `rendering`.
        """
