"""A vector environment in one worker process (see `worker_pool`)."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laser_tf.environments import environment_worker, faults, result_checks, worker_pool


class VectorWorker(environment_worker.Worker):
    """A `vector_adapter.VectorAdapter`, whose environments step together.

    An exception of the vector environment restarts this process. An environment with an invalid
    result starts a new episode.
    """

    def __init__(
        self,
        restarts: int,
        file: int,
        *,
        make: Callable[[int, int], Any],
        seeds: Sequence[int],
        **options: Any,
    ):
        """Prepares the creation of the vector environment; `make` gets its size and its seed.

        For the other arguments see `Worker`.
        """
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
                time_step = time_steps[index]
                try:
                    scalars = result_checks.time_step(time_step, starts=bool(starts[index]))
                    self._write(index, time_step, scalars)
                except Exception as error:  # Values of users have any type.
                    failures[index] = worker_pool.failure_of(error)
        return failures

    def render(self, index: int) -> np.ndarray | str:
        """See `Worker`."""
        vector: Any = self._environments[0]
        try:
            return result_checks.rgb_image(vector.render(index))
        except Exception as error:  # User code or a library raises anything.
            return faults.describe(error)
