"""Python environments as one batch, which step in parallel worker processes."""

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np
import tree

from laser_tf import observations
from laser_tf.environments import (
    base,
    environment_worker,
    faults,
    worker_pool,
)

if TYPE_CHECKING:
    from laser_tf.environments import python_config


class PythonEnvironments(base.BatchedEnvironment):
    """N environments, each a `dm_env.Environment` in one of several workers.

    An environment that raises, or returns what its specs do not allow, is made again; so are all
    environments of a worker that dies or does not answer in time. The result of that step is lost:
    the observation before replaces it, as the last of the episode, with reward 0 and discount 1.
    """

    def __init__(
        self,
        config: "python_config.PythonConfig",
        make: Callable[[int], dm_env.Environment],
        task: str,
        num_envs: int,
        seed: int,
    ):
        """Starts the workers; environment i is made from `seed + i`.

        Args:
          config: Configuration.
          make: Makes one environment from its seed; pickled, and called in a worker.
          task: Name of the environment, for messages.
          num_envs: N.
          seed: See above.

        Raises:
          ValueError: If an environment cannot be made, or its specs have no canonical form.
        """
        num_workers = min(config.num_workers or len(os.sched_getaffinity(0)), num_envs)
        self._parts = np.array_split(np.arange(num_envs), num_workers)  # For each worker.
        self._name = task
        self._files = [os.memfd_create("laser_tf_steps") for _ in self._parts]
        self._newest: list[environment_worker.SharedMemoryTimestep] = []
        self._workers: worker_pool.WorkerPool | None = None
        try:
            self._workers = self._start(
                functools.partial(
                    environment_worker.Worker,
                    make=make,
                    action_repeat=config.action_repeat,
                    text_length=config.text_length,
                ),
                seed,
                config.reply_seconds,
            )
            description = self._describe()
        except BaseException:
            self._free()
            raise
        self._newest = [
            environment_worker.SharedMemoryTimestep(file, description.observation, len(part))
            for file, part in zip(self._files, self._parts, strict=True)
        ]
        super().__init__(
            num_envs,
            action_repeat=config.action_repeat,
            observation=description.observation,
            action=description.action,
        )
        self._own = description.own

    def native_specs(self) -> list[base.NativeSpec]:
        """See `BatchedEnvironment`: a `Discrete` may start at another number than 0."""
        return [self._own]

    def _start(self, worker: Callable, seed: int, reply_seconds: float) -> worker_pool.WorkerPool:
        return worker_pool.WorkerPool(
            {
                f"worker {index} of {self._name}": functools.partial(
                    worker, seeds=(seed + part).tolist()
                )
                for index, part in enumerate(self._parts)
            },
            reply_seconds,
            files=self._files,
            progressed_at=self._progressed_at,
        )

    def _progressed_at(self, worker: int) -> float:
        """Returns when a worker called its current environment; 0 before the first step."""
        return float(self._newest[worker].called_at[0]) if self._newest else 0.0

    def _describe(self) -> environment_worker.Description:
        """Returns the specs, which must be the same in all workers."""
        answers = self._workers.call([("describe",)] * len(self._parts))
        for answer in answers:
            if not isinstance(answer, environment_worker.Description):
                raise faults.EnvironmentCreationError(self._name, answer.reason, answer.details)
            if answer != answers[0]:
                raise faults.EnvironmentCreationError(
                    self._name, "its specs depend on its seed, and one agent needs the same of all"
                )
        return answers[0]

    def _reset(self) -> Any:
        self._begin(self._over, self._over, self._no_actions())
        self._observation, *_ = self._read()
        return self._observation

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        commands = np.where(is_first, environment_worker.RESET, environment_worker.STEP)
        lost = self._play(commands, actions)
        cut = lost & ~is_first
        cut |= self._begin(lost & is_first, is_first, actions)
        observation, reward, discount, is_last = self._read()
        if cut.any():  # The results of this step are lost.
            observation = base.replaced(cut, self._observation, observation)
            reward, discount = np.where(cut, 0, reward), np.where(cut, 1, discount)
        self._observation = observation
        return base.Transition(observation, reward, discount, is_last | cut)

    def _begin(self, pending: np.ndarray, beginning: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Starts episodes, as often as needed.

        Args:
          pending: bool [N], environments that have to start.
          beginning: bool [N], these and the environments that started with this step. They start
            again if their worker dies.
          actions: Placeholder for the workers.

        Returns:
          Bool [N], other environments that were lost.
        """
        others = np.zeros(self.num_envs, bool)
        while pending.any():
            commands = np.where(pending, environment_worker.RESET, environment_worker.NOTHING)
            lost = self._play(commands, actions)
            pending, others = lost & beginning, others | (lost & ~beginning)
        return others

    def _play(self, commands: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Sends commands to the workers; returns which environments need a reset, bool [N]."""
        lost = np.zeros(self.num_envs, bool)
        answers = self._workers.call(
            [
                ("play", commands[part].tolist(), actions[part]) if commands[part].any() else None
                for part in self._parts
            ]
        )
        for worker, answer in enumerate(answers):
            if isinstance(answer, worker_pool.Failure):
                lost[self._parts[worker]] = True
                self._note_worker(worker, answer)
            elif answer:
                for index, failure in answer.items():
                    lost[self._parts[worker][index]] = True
                    self._note_restart(self._parts[worker][index], failure.reason, failure.details)
        return lost

    def _note_worker(self, worker: int, failure: worker_pool.Failure) -> None:
        part = self._parts[worker]
        reason = f"its worker process: {failure.reason}"
        if len(part) > 1:
            reason += f"; environments {part[0]} to {part[-1]} shared it"
        self._note_restart(part[self._newest[worker].current_env[0]], reason, failure.details)

    def _note_restart(self, index: int, reason: str, details: str) -> None:
        self.faults.note(int(index), faults.RESTARTS, reason + faults.STARTED_AGAIN, details)

    def _read(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Returns copies of the newest time steps of all workers."""
        leaves = [
            np.concatenate(parts)
            for parts in zip(*(steps.observation for steps in self._newest), strict=True)
        ]
        observation = tree.unflatten_as(self._observation_spec, leaves)
        return observation, *(
            np.concatenate([getattr(steps, name) for steps in self._newest])
            for name in ("reward", "discount", "last")
        )

    def _no_actions(self) -> np.ndarray:
        return np.zeros((self.num_envs, *self._action_spec.shape), self._action_spec.dtype)

    def outside_bounds(self) -> str:
        """See `BatchedEnvironment`."""
        answers = self._workers.call([("outside_bounds",)] * len(self._parts))
        return next((answer for answer in answers if isinstance(answer, str) and answer), "")

    def render(self, index: int) -> np.ndarray:
        """Returns the rendered image, or else the image that the environment observes.

        Raises:
          RenderError: If there is neither.
        """
        requests: list[tuple | None] = [None] * len(self._parts)
        worker = next(w for w, part in enumerate(self._parts) if index in part)
        requests[worker] = ("render", int(index - self._parts[worker][0]))
        answer = self._workers.call(requests)[worker]
        if isinstance(answer, np.ndarray):
            return answer
        for spec, leaf in zip(
            tree.flatten(self._observation_spec), tree.flatten(self._observation), strict=True
        ):
            if observations.is_image(spec) and spec.dtype == np.uint8 and spec.shape[2] in (1, 3):
                return np.broadcast_to(leaf[index], (*spec.shape[:2], 3)).copy()
        raise base.RenderError(f"{self._name} renders no image: {answer}")

    def close(self) -> None:
        """Ends the workers."""
        super().close()
        self._free()

    def _free(self) -> None:
        if self._workers is not None:
            self._workers.close()
        self._newest = []  # They hold the files, too.
        for file in self._files:
            os.close(file)
        self._files = []
