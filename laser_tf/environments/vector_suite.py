"""Vector environments of gymnasium (`gymnasium.vector.VectorEnv`) that step themselves.

`task=my_module:make` names a function that returns a vector environment, e.g. of EnvPool.
"""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any, ClassVar

import dm_env

from laser_tf.environments import (
    environment_worker,
    faults,
    function_suites,
    pickled_functions,
    python_config,
    python_environments,
    user_modules,
    vector_worker,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorConfig(function_suites.FunctionConfig):
    """Configuration of functions, named as `module:function`, that return a vector environment.

    The function gets `arguments` and `num_envs`, and `seed` and `action_repeat` if it has such
    parameters.
    """

    suite: str = "gymnasium_vector"
    num_workers: int = 0  # processes; each steps its share of num_envs; 0: one
    action_repeat: int = 1  # env frames; an agent step; the function gets it

    worker_class: ClassVar[type[environment_worker.Worker]] = vector_worker.VectorWorker
    engine_repeats_actions: ClassVar[bool] = True
    user_creates_batch: ClassVar[bool] = True

    @property
    def worker_count(self) -> int:
        """See `WorkerConfig`; a vector environment has its own threads or processes."""
        return self.num_workers or 1

    @property
    def max_step_seconds(self) -> float:
        """See `WorkerConfig`; one call steps all environments of a worker."""
        return 2 * self.reply_seconds

    def maker(self, task: str, rendering: bool) -> Callable[..., dm_env.Environment]:
        """Returns a picklable function of `num_envs` and `seed`, see `create`."""
        return functools.partial(
            create, task, self.pickled_function, self.keyword_arguments(), self.action_repeat
        )

    def make(
        self, task: str, num_envs: int, seed: int, rendering: bool
    ) -> python_environments.PythonEnvironments:
        """See `WorkerConfig`; `create` loads pickled functions, too."""
        return python_config.WorkerConfig.make(self, task, num_envs, seed, rendering)


def create(
    task: str,
    pickled: str,
    arguments: dict[str, Any],
    action_repeat: int,
    num_envs: int,
    seed: int,
) -> dm_env.Environment:
    """Creates a vector environment, in a worker.

    Args:
      task: Path of the function, or its name if it is pickled.
      pickled: Value of `pickled_function`.
      arguments: Keyword arguments of the function.
      action_repeat: Env frames of a step.
      num_envs: Number of environments.
      seed: Seed of the first environment; the next has `seed + 1`.

    Raises:
      UnsupportedSpaceError: If the function does not exist, or returns something else.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    from gymnasium import vector

    from laser_tf.environments import vector_adapter

    function = pickled_functions.load(pickled) if pickled else user_modules.load_function(task)
    given = {"num_envs": num_envs, **arguments}
    if user_modules.has_parameter(function, "action_repeat"):
        given = {"action_repeat": action_repeat, **given}
    elif action_repeat > 1:
        raise faults.UnsupportedSpaceError(
            f"environment.action_repeat must be 1, got {action_repeat}: {task} has no parameter "
            "action_repeat. Add it, or use 1"
        )
    environment = user_modules.call_function(function, given, seed)
    if not isinstance(environment, vector.VectorEnv):
        raise faults.UnsupportedSpaceError(
            f"{task} must return a gymnasium.vector.VectorEnv, got a {type(environment).__name__}. "
            "Use the suites gymnasium or dm_env for single environments"
        )
    if environment.num_envs != num_envs:
        raise faults.UnsupportedSpaceError(
            f"{task} must return num_envs={num_envs} environments, got {environment.num_envs}. "
            "Create as many as num_envs"
        )
    return vector_adapter.VectorAdapter(environment, seed)
