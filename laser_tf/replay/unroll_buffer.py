"""Where actors fill unrolls."""

import secrets
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from laser_tf import types
from laser_tf.replay import stored_unroll


class UnrollBuffer:
    """The T + 1 steps that an actor is filling for N environments, and their frame history."""

    def __init__(
        self,
        unroll_signature: stored_unroll.StoredUnroll,
        task_ids: np.ndarray,
        member: int = 0,
    ):
        """Makes room for unrolls of a signature.

        Args:
          unroll_signature: of an unroll.
          task_ids: integers [N], the tasks that N environments play.
          member: index of the agent that acts, in its sweep.
        """
        self.num_envs = len(task_ids)
        steps = stored_unroll.num_steps(unroll_signature.env_output)
        self.last_step = steps - 1
        self._task_ids = task_ids
        self._member = np.int32(member)
        # Of 63 bits, so that no two environments of a fleet are ever alike.
        self._tags = [np.int64(secrets.randbits(63)) for _ in task_ids]
        self._numbers = np.zeros(self.num_envs, np.int64)  # of the next unrolls
        self._environments = np.arange(self.num_envs)
        self._keeps_next_state = unroll_signature.next_core_state != ()
        self._has_state = unroll_signature.core_state != ()
        every_step = (
            unroll_signature.env_output,
            unroll_signature.agent_output,
            tf.nest.map_structure(
                lambda spec: tf.TensorSpec([steps, *spec.shape], spec.dtype),
                unroll_signature.core_state,
            ),
        )
        self._structure = tree.map_structure(lambda _: 0, every_step)
        # Flat from here on: mapping over nests would cost more than the copying.
        self._arrays = [
            np.zeros([spec.shape[0], self.num_envs, *spec.shape[1:]], spec.dtype.as_numpy_dtype)
            for spec in tree.flatten(every_step)
        ]
        self._histories = [array.shape[0] - steps for array in self._arrays]
        self._is_first = len(tree.flatten(unroll_signature.env_output[:3]))  # its place among them

    def write(
        self,
        step: int | np.ndarray,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        core_state: Any,
    ) -> None:
        """Stores a step: what the environment said, what the agent answered, its state before.

        Args:
          step: of all environments, or integers [N], one for each.
          env_output: arrays [N, ...], single frames.
          agent_output: arrays [N, ...].
          core_state: arrays [N, ...].
        """
        leaves = tree.flatten((env_output, agent_output, core_state if self._has_state else ()))
        for array, history, leaf in zip(self._arrays, self._histories, leaves, strict=True):
            array[self._at(step + history)] = leaf

    def unroll(
        self, index: int, learner_update: int, new_steps: int | None = None
    ) -> stored_unroll.StoredUnroll:
        """The filled unroll of one environment (views), with its next number.

        Args:
          index: of the environment.
          learner_update: updates behind the weights that acted.
          new_steps: agent steps that the unroll adds to those before it; None: T.
        """
        env_output, agent_output, states = tree.unflatten_as(
            self._structure, [array[:, index] for array in self._arrays]
        )
        number = self._numbers[index]
        self._numbers[index] += 1
        first, last = (
            tree.map_structure(lambda array, step=step: array[step], states)
            for step in (0, self.last_step)
        )
        return stored_unroll.StoredUnroll(
            env_output=env_output,
            agent_output=agent_output,
            core_state=first,
            next_core_state=last if self._keeps_next_state else (),
            task=self._task_ids[index],
            member=self._member,
            learner_update=np.int64(learner_update),
            new_steps=np.int64(self.last_step if new_steps is None else new_steps),
            actor=self._tags[index],
            number=number,
        )

    def carry_over(self, index: int | slice = slice(None)) -> None:
        """Makes the last step, with its history, the first step of the next unroll.

        Args:
          index: of one environment; by default of all.
        """
        for array in self._arrays:
            kept = array.shape[0] - self.last_step
            array[:kept, index] = array[self.last_step :, index].copy()

    def end_episode(self, index: int, steps: int) -> None:
        """Marks what follows the first `steps` steps of one environment as no transitions."""
        self._arrays[self._is_first][self._histories[self._is_first] + steps :, index] = True

    def _at(self, step: int | np.ndarray) -> Any:
        return step if isinstance(step, int) else (step, self._environments)
