"""Vector environments (`gymnasium.vector.VectorEnv`, e.g. of EnvPool) that step themselves."""

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import dm_env
import numpy as np

from laser_tf.environments import (
    environment_worker,
    faults,
    function_suites,
    user_functions,
    worker_pool,
)


class VectorWorker(environment_worker.Worker):
    """A `vector_adapter.VectorAdapter`, whose environments step together.

    `make` gets its size and its seed. An exception of the vector environment restarts this process.
    An environment with an invalid result starts a new episode.
    """

    def __init__(
        self, restarts: int, file: int, *, make: Callable, seeds: Sequence[int], **options: Any
    ):
        make_all = functools.partial(make, len(seeds))
        super().__init__(restarts, file, make=make_all, seeds=seeds, **options)

    def step(
        self, commands: Sequence[int], actions: np.ndarray | None
    ) -> dict[int, worker_pool.Failure]:
        """See `Worker`. Environments without a command may step, too, and must be reset."""
        self._note_call(0)
        vector: Any = self._environments[0] or self._create(0)
        self._note_call(0)
        starts = np.equal(commands, environment_worker.RESET)
        if environment_worker.STEP in commands:
            time_steps = vector.step([self._action(action) for action in actions], starts)
        else:
            time_steps = vector.reset(starts)
        failures = {}
        with np.errstate(over="ignore"):  # The parent finds what is infinite in float32.
            for index in np.flatnonzero(commands).tolist():
                time_step, is_first = time_steps[index], bool(starts[index])
                try:
                    scalars = environment_worker.check_time_step(time_step, starts=is_first)
                    self._write(index, time_step, scalars)
                except Exception as error:  # Values of users have any type.
                    failures[index] = worker_pool.failure_of(error)
        return failures

    def _rendered(self, index: int) -> Any:
        return self._environments[0].render(index)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorConfig(function_suites.FunctionConfig):
    """Configuration of functions, named as `module:function`, that return a vector environment.

    The function gets `arguments` and `num_envs`, and `seed` and `action_repeat` if it has such
    parameters.
    """

    suite: str = "gymnasium_vector"
    num_workers: int = 0  # processes; each steps a share of num_envs; 0: one
    action_repeat: int = 1  # env frames; per agent step; the function receives it

    worker_class: ClassVar[type[environment_worker.Worker]] = VectorWorker
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


def create(
    task: str, pickled: str, arguments: dict[str, Any], action_repeat: int, num_envs: int, seed: int
) -> dm_env.Environment:
    """Creates a vector environment, in a worker; `task` is a path, or the name if it is pickled.

    Raises:
      UnsupportedSpaceError: If the function does not exist, or returns something else.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    from gymnasium import vector

    from laser_tf.environments import vector_adapter

    function = user_functions.load_function(task, pickled)
    given = {"num_envs": num_envs, **arguments}
    if user_functions.has_parameter(function, "action_repeat"):
        given = {"action_repeat": action_repeat, **given}
    elif action_repeat > 1:
        raise faults.UnsupportedSpaceError(
            f"environment.action_repeat must be 1, got {action_repeat}: {task} has no parameter "
            "action_repeat. Add it, or use 1"
        )
    environment = user_functions.call_function(function, given, seed)
    if not isinstance(environment, vector.VectorEnv):
        raise faults.UnsupportedSpaceError(
            f"{task} must return a gymnasium.vector.VectorEnv, got {type(environment).__name__}. "
            "Use the suites gymnasium or dm_env for single environments"
        )
    if environment.num_envs != num_envs:
        raise faults.UnsupportedSpaceError(
            f"{task} must return num_envs={num_envs} environments, got {environment.num_envs}. "
            "Create as many as num_envs"
        )
    return vector_adapter.VectorAdapter(environment, seed)
