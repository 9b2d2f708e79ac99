"""Python environments as one batch, which step in parallel worker processes."""

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np
import tree

from laser_tf import observations
from laser_tf.environments import base, environment_worker, faults, worker_pool

if TYPE_CHECKING:
    from laser_tf.environments import python_config


class PythonEnvironments(base.BatchedEnvironment):
    """N environments, each a `dm_env.Environment` in one of several workers.

    An environment that raises or violates its specs is recreated. All environments of a worker that
    ends or does not answer in time are recreated, too. The result of that step is lost: the
    previous observation replaces it as the last of the episode, with reward 0 and discount 1.
    """

    def __init__(
        self,
        config: "python_config.WorkerConfig",
        make: Callable[..., dm_env.Environment],
        task: str,
        num_envs: int,
        seed: int,
    ):
        """Starts the workers; `make` is the argument of `config.worker_class`.

        Raises:
          ConfigError: If an environment cannot be created, or its specs have no canonical form.
        """
        num_workers = min(config.worker_count, num_envs)
        self._parts = np.array_split(np.arange(num_envs), num_workers)  # For each worker.
        self._name = task
        self._files = [os.memfd_create("laser_tf_steps") for _ in self._parts]
        self._memory: list[np.ndarray] = []
        self._workers: worker_pool.WorkerPool | None = None
        worker = functools.partial(
            config.worker_class,
            make=make,
            action_repeat=1 if config.engine_repeats_actions else config.action_repeat,
            max_words=config.max_words(),
        )
        factories = [
            functools.partial(worker, seeds=(seed + part).tolist()) for part in self._parts
        ]
        try:
            self._workers = worker_pool.WorkerPool(
                factories, config.reply_seconds, self._files, self._progressed_at
            )
            description = self._describe()
        except BaseException:
            self.close()
            raise
        self._memory = [
            environment_worker.map_memory(file, description.observation, len(part))
            for file, part in zip(self._files, self._parts, strict=True)
        ]
        super().__init__(
            num_envs,
            action_repeat=config.action_repeat,
            observation=description.observation,
            action=description.action,
        )
        self._native = description.native

    def native_specs(self) -> list[base.NativeSpec]:
        """See `BatchedEnvironment`."""
        return [self._native]

    def _progressed_at(self, worker: int) -> float:
        """Returns the time of the last call of an environment in a worker; 0 before the first."""
        return float(self._memory[worker]["called_at"]) if self._memory else 0.0

    def _describe(self) -> environment_worker.Description:
        """Returns the specs, which must be the same in all workers."""
        answers = self._workers.call([("describe",)] * len(self._parts))
        for answer in answers:
            if isinstance(answer, worker_pool.Failure):
                raise faults.EnvironmentCreationError(self._name, answer.reason, answer.details)
            if answer != answers[0]:
                raise faults.EnvironmentCreationError(
                    self._name,
                    "its specs must not depend on the seed: one agent steps all environments",
                )
        return answers[0]

    def _reset(self) -> Any:
        self._start_episodes(self._over, self._over)
        self._observation = self._read().observation
        return self._observation

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        commands = np.where(is_first, environment_worker.RESET, environment_worker.STEP)
        lost = self._call(commands, actions)
        cut = lost & ~is_first
        cut |= self._start_episodes(lost & is_first, is_first)
        transition = self._read()
        if cut.any():  # The results of this step are lost.
            transition = base.Transition(
                base.replaced(cut, self._observation, transition.observation),
                np.where(cut, 0, transition.reward),
                np.where(cut, 1, transition.discount),
                transition.is_last | cut,
            )
        self._observation = transition.observation
        return transition

    def _start_episodes(self, pending: np.ndarray, starting: np.ndarray) -> np.ndarray:
        """Starts episodes until no environment of the mask `pending`, bool [N], is left.

        `starting` are these and the environments that started in this step. They start again if
        their worker ends. Returns the mask of other environments that were lost.
        """
        others = np.zeros(self.num_envs, bool)
        while pending.any():
            commands = np.where(pending, environment_worker.RESET, environment_worker.NOTHING)
            lost = self._call(commands)
            pending, others = lost & starting, others | (lost & ~starting)
        return others

    def _call(self, commands: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Sends commands to the workers and returns a mask bool [N] of those that need a reset."""
        lost = np.zeros(self.num_envs, bool)
        requests = [
            ("step", commands[part].tolist(), None if actions is None else actions[part])
            if commands[part].any()
            else None
            for part in self._parts
        ]
        for worker, answer in enumerate(self._workers.call(requests)):
            part = self._parts[worker]
            if isinstance(answer, worker_pool.Failure):
                lost[part] = True
                self._note_worker(worker, answer)
            else:
                for index, failure in (answer or {}).items():
                    lost[part[index]] = True
                    self._note_restart(part[index], failure)
        return lost

    def _note_worker(self, worker: int, failure: worker_pool.Failure) -> None:
        part = self._parts[worker]
        if not failure.ends_run:
            reason = f"its worker process: {failure.reason}"
            if len(part) > 1:
                reason += f"; environments {part[0]} to {part[-1]} shared it"
            failure = failure._replace(reason=reason)
        self._note_restart(part[self._memory[worker]["current_env"]], failure)
        self.faults.counts[faults.RESTARTS] += len(part) - 1

    def _note_restart(self, index: int, failure: worker_pool.Failure) -> None:
        if failure.ends_run:
            raise faults.EnvironmentFailedError(f"{self._name} failed: {failure.reason}")
        step = 0 if self._over[index] else int(self.faults.episode_steps[index]) + 1
        self.faults.note(int(index), faults.RESTARTS, failure.reason, failure.details, step)

    def _read(self) -> base.Transition:
        """Returns copies of the newest time steps of all workers."""
        steps = [memory["steps"] for memory in self._memory]
        *leaves, reward, discount, is_last = (
            np.concatenate([part[name] for part in steps]) for name in steps[0].dtype.names
        )
        observation = tree.unflatten_as(self._observation_spec, leaves)
        return base.Transition(observation, reward, discount, is_last)

    def render(self, index: int) -> np.ndarray:
        """Returns the rendered image, or else an observed image; see `BatchedEnvironment`."""
        requests = [
            ("render", int(index - part[0])) if index in part else None for part in self._parts
        ]
        answer = next(answer for answer in self._workers.call(requests) if answer is not None)
        if isinstance(answer, np.ndarray):
            return answer
        if isinstance(answer, worker_pool.Failure):
            raise base.RenderError(f"{self._name} renders no image: {answer.reason}")
        for spec, leaf in zip(
            tree.flatten(self._observation_spec), tree.flatten(self._observation), strict=True
        ):
            if observations.is_image(spec) and spec.dtype == np.uint8 and spec.shape[2] in (1, 3):
                return np.broadcast_to(leaf[index], (*spec.shape[:2], 3)).copy()
        raise base.RenderError(f"{self._name} renders no image: {answer}")

    def close(self) -> None:
        """Ends the workers."""
        super().close()
        if self._workers is not None:
            self._workers.close()
        self._memory = []  # They hold the files, too.
        for file in self._files:
            os.close(file)
        self._files = []
