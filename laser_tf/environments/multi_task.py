"""Several tasks in one batch of games, each with a fixed share of them."""

import collections
from collections.abc import Sequence

import numpy as np

from laser_tf import types
from laser_tf.environments import base


class MultiTask(base.BatchedEnvironment):
    """Environments side by side: the games of the first task, then those of the second, ...

    Rewards may be scaled, each task's by a number of its own. Game i of a task depends on its own
    environment alone.
    """

    def __init__(
        self,
        tasks: Sequence[str],
        environments: Sequence[base.BatchedEnvironment],
        reward_scales: Sequence[float],
    ):
        """Takes environments over.

        Args:
          tasks: K names.
          environments: K, of the same specs.
          reward_scales: K factors of rewards.

        Raises:
          ValueError: if specs differ; the message names the task and both specs.
        """
        first = environments[0]
        for task, environment in zip(tasks, environments, strict=True):
            if environment.spec() != first.spec():
                for other in environments:
                    other.close()
                raise ValueError(
                    f"tasks differ: {task} has {_describe(environment)}, {tasks[0]} "
                    f"{_describe(first)}; one agent needs the same of all"
                )
        super().__init__(
            sum(environment.num_envs for environment in environments),
            action_repeat=first.action_repeat,
            frame_shape=first.spec().frame_shape,
            num_actions=first.spec().num_actions,
            instruction_length=first.instruction_length,
        )
        self.tasks = tuple(tasks)
        sizes = [environment.num_envs for environment in environments]
        self.task_ids = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self._environments = environments
        self._starts = np.cumsum([0, *sizes])
        self.reward_scales = np.asarray(reward_scales, np.float32)[self.task_ids]

    def _reset(self) -> np.ndarray:
        self._first = [environment.reset() for environment in self._environments]
        return np.concatenate([output.observation for output in self._first])

    def _instruction(self) -> np.ndarray:
        return np.concatenate([output.instruction for output in self._first])

    def _step(self, actions: np.ndarray) -> types.EnvOutput:
        outputs = [
            environment.step(actions[start : start + environment.num_envs])
            for environment, start in zip(self._environments, self._starts[:-1], strict=True)
        ]
        columns = [
            np.concatenate(column) if isinstance(column[0], np.ndarray) else ()
            for column in zip(*outputs, strict=True)
        ]
        output = types.EnvOutput(*columns)
        return output._replace(reward=output.reward * self.reward_scales)

    def fault_counts(self) -> collections.Counter[str]:
        """Those of all environments, and of rewards that scaling made infinite."""
        own = super().fault_counts()
        return sum((each.fault_counts() for each in self._environments), own)

    def render(self, index: int) -> np.ndarray:
        """The picture of that game's own environment."""
        task = self.task_ids[index]
        return self._environments[task].render(index - self._starts[task])

    def close(self) -> None:
        """Closes all."""
        super().close()
        for environment in self._environments:
            environment.close()


def _describe(environment: base.BatchedEnvironment) -> str:
    spec = environment.spec()
    height, width, channels = spec.frame_shape
    text = f" and {spec.instruction_length} words" if spec.instruction_length else ""
    return f"frames of {height}x{width}x{channels}{text}, {spec.num_actions} actions"
