"""Several tasks in one batch of environments, each with a fixed share of them."""

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np
import tree

from laser_tf import errors, observations, types
from laser_tf.environments import base


class MultiTask(base.BatchedEnvironment):
    """Environments of several tasks, in the order of the tasks.

    Raises:
      ConfigError: If specs differ; the message names the task and both specs.
    """

    def __init__(self, tasks: Sequence[str], environments: Sequence[base.BatchedEnvironment]):
        first = environments[0]
        for task, environment in zip(tasks, environments, strict=True):
            if environment.spec() != first.spec():
                raise errors.ConfigError(
                    f"tasks differ: {task} has {observations.describe(environment.spec())}, "
                    f"{tasks[0]} {observations.describe(first.spec())}; one agent needs the same "
                    "of all"
                )
        super().__init__(
            sum(environment.num_envs for environment in environments),
            action_repeat=first.action_repeat,
            observation=first.observation_spec(),
            action=first.action_spec(),
        )
        self.tasks = tuple(tasks)
        sizes = [environment.num_envs for environment in environments]
        self.task_ids = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self._environments = environments
        self._starts = np.cumsum([0, *sizes])

    def _reset(self) -> Any:
        return _concatenate([environment.reset().observation for environment in self._environments])

    def _complete(self, transition: base.Transition, actions: np.ndarray) -> types.EnvOutput:
        """See `BatchedEnvironment`; a fault in the first observation of a task ends its episode."""
        output = super()._complete(transition, actions)
        self._over |= self._inner_over()
        return output

    def _inner_over(self) -> np.ndarray:
        return np.concatenate([environment._over for environment in self._environments])

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        outputs = []
        for environment, start in zip(self._environments, self._starts[:-1], strict=True):
            own = slice(start, start + environment.num_envs)
            environment._over = is_first[own]
            outputs.append(environment.step(actions[own]))
        output = _concatenate(outputs)
        return base.Transition(
            output.observation, output.reward, output.discount, self._inner_over()
        )

    def native_specs(self) -> list[base.NativeSpec]:
        """See `BatchedEnvironment`."""
        return [own for environment in self._environments for own in environment.native_specs()]

    def fault_counts(self) -> collections.Counter[str]:
        """See `BatchedEnvironment`; includes rewards that scaling made infinite."""
        counts = [environment.fault_counts() for environment in self._environments]
        return sum(counts, super().fault_counts())

    def render(self, index: int) -> np.ndarray:
        """See `BatchedEnvironment`."""
        task = self.task_ids[index]
        return self._environments[task].render(index - self._starts[task])

    def close(self) -> None:
        """Closes the environments of all tasks."""
        super().close()
        for environment in self._environments:
            environment.close()


def _concatenate(nests: Sequence[Any]) -> Any:
    return tree.map_structure(lambda *leaves: np.concatenate(leaves), *nests)
