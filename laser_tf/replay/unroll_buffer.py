"""Where actors fill unrolls."""

from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import types
from laser_tf.replay import stored_unroll


class UnrollBuffer:
    """The T + 1 rows that an actor is filling for N environments, and their frame history."""

    def __init__(
        self,
        unroll_signature: stored_unroll.StoredUnroll,
        task_ids: np.ndarray,
        agent_index: int = 0,
    ):
        """Makes room for unrolls of a signature.

        Args:
          unroll_signature: of an unroll.
          task_ids: integers [N], the tasks that N environments play.
          agent_index: of the agent that acts, in its sweep.
        """
        self.num_envs = len(task_ids)
        self.last_row = unroll_signature.reward.shape[0] - 1
        self._history = unroll_signature.frames.shape[0] - unroll_signature.reward.shape[0]
        self._task_ids = task_ids
        self._agent = np.int32(agent_index)
        self._games = np.arange(self.num_envs)
        self._keeps_next_state = unroll_signature.next_core_state != ()
        self._arrays = {
            name: self._room(spec.shape[0], spec.shape[1:], spec.dtype)
            for name, spec in unroll_signature._asdict().items()
            if isinstance(spec, tf.TensorSpec) and spec.shape.rank
        }
        self._states = tf.nest.map_structure(
            lambda spec: self._room(self.last_row + 1, spec.shape, spec.dtype),
            unroll_signature.core_state,
        )

    def _room(self, rows: int, shape: tf.TensorShape, dtype: tf.DType) -> np.ndarray:
        return np.zeros([rows, self.num_envs, *shape], dtype.as_numpy_dtype)

    def write(
        self,
        row: int | np.ndarray,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        core_state: Any,
    ) -> None:
        """Stores a row: what the environment said, what the agent answered, its state before that.

        Args:
          row: of all environments, or integers [N], one for each.
          env_output: arrays [N, ...], single frames.
          agent_output: arrays [N, ...].
          core_state: arrays [N, ...].
        """
        self._arrays["frames"][self._at(row + self._history)] = env_output.observation
        self._arrays["is_first"][self._at(row + self._history)] = env_output.is_first
        for name in ("reward", "discount", "previous_action", "instruction"):
            if name in self._arrays:
                self._arrays[name][self._at(row)] = getattr(env_output, name)
        self._arrays["action"][self._at(row)] = agent_output.action
        self._arrays["logits"][self._at(row)] = agent_output.logits
        for room, state in zip(tf.nest.flatten(self._states), self._kept(core_state), strict=True):
            room[self._at(row)] = state

    def _kept(self, core_state: Any) -> list[np.ndarray]:
        return tf.nest.flatten(core_state) if self._states != () else []

    def unroll(
        self, index: int, learner_update: int, new_steps: int | None = None
    ) -> stored_unroll.StoredUnroll:
        """The filled unroll of one environment (views).

        Args:
          index: of the environment.
          learner_update: updates behind the weights that acted.
          new_steps: agent steps that the unroll adds to those before it; None: T.
        """
        columns = {name: array[:, index] for name, array in self._arrays.items()}
        first, last = (
            tf.nest.map_structure(lambda states, row=row: states[row, index], self._states)
            for row in (0, self.last_row)
        )
        return stored_unroll.StoredUnroll(
            **({"instruction": ()} | columns),
            core_state=first,
            next_core_state=last if self._keeps_next_state else (),
            task=self._task_ids[index],
            agent=self._agent,
            learner_update=np.int64(learner_update),
            new_steps=np.int64(self.last_row if new_steps is None else new_steps),
        )

    def carry_over(self, index: int | slice = slice(None)) -> None:
        """Makes the last row, with its history, the first row of the next unroll.

        Args:
          index: of one environment; by default of all.
        """
        for array in (*self._arrays.values(), *tf.nest.flatten(self._states)):
            kept = array.shape[0] - self.last_row
            array[:kept, index] = array[self.last_row :, index].copy()

    def end_episode(self, index: int, rows: int) -> None:
        """Marks what follows the first `rows` rows of one environment as no transitions."""
        self._arrays["is_first"][self._history + rows :, index] = True

    def _at(self, row: int | np.ndarray) -> Any:
        return row if isinstance(row, int) else (row, self._games)
