"""What one item of replay holds: an unroll of one environment, with single frames.

Frames are stored once and stacked in the learner: an Atari observation of four frames would take
four times the memory. K - 1 frames before row 0 come along as the history of the first stacks.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from laser_tf import types
from laser_tf.replay import frame_stacking


class StoredUnroll(NamedTuple):
    """One unroll (or a batch of them, `[B, ...]`); rows as in `laser_tf.types`."""

    frames: Any  # uint8 [K - 1 + T + 1, H, W, C]
    is_first: Any  # bool [K - 1 + T + 1]
    reward: Any  # float32 [T + 1]
    discount: Any  # float32 [T + 1]
    previous_action: Any  # int32 [T + 1]
    action: Any  # int32 [T + 1]
    logits: Any  # float32 [T + 1, A]
    instruction: Any  # int32 [T + 1, L]; () without a text channel
    core_state: Any  # before row 0
    task: Any  # int32 [], index of the task that was played
    agent: Any  # int32 [], index in its sweep of the agent that acted; 0 where it is alone
    learner_update: Any  # int64 [], updates behind the weights that acted at the first rows


class Batch(NamedTuple):
    """What the learner gets at once: unrolls, online ones first."""

    unrolls: StoredUnroll  # [B, ...]
    is_online: Any  # bool [B]
    key: Any  # uint64 [B], Reverb's keys of what was drawn from replay; 0 elsewhere
    weight: Any  # float32 [B], importance weights


def unweighted(unrolls: StoredUnroll, is_online: np.ndarray) -> Batch:
    """A batch in which all unrolls count alike."""
    size = len(is_online)
    return Batch(unrolls, is_online, np.zeros(size, np.uint64), np.ones(size, np.float32))


def signature(
    spec: types.EnvironmentSpec, core_state: Any, *, unroll_length: int, frame_stack: int
) -> StoredUnroll:
    """The `tf.TensorSpec`s of a stored unroll.

    Args:
      spec: of the environment.
      core_state: an agent's `initial_state(1)`.
      unroll_length: T.
      frame_stack: K.
    """
    rows, frames, words = unroll_length + 1, unroll_length + frame_stack, spec.instruction_length
    return StoredUnroll(
        frames=tf.TensorSpec([frames, *spec.frame_shape], tf.uint8, "frames"),
        is_first=tf.TensorSpec([frames], tf.bool, "is_first"),
        reward=tf.TensorSpec([rows], tf.float32, "reward"),
        discount=tf.TensorSpec([rows], tf.float32, "discount"),
        previous_action=tf.TensorSpec([rows], tf.int32, "previous_action"),
        action=tf.TensorSpec([rows], tf.int32, "action"),
        logits=tf.TensorSpec([rows, spec.num_actions], tf.float32, "logits"),
        instruction=tf.TensorSpec([rows, words], tf.int32, "instruction") if words else (),
        core_state=tf.nest.map_structure(
            lambda state: tf.TensorSpec(state.shape[1:], state.dtype, "core_state"), core_state
        ),
        task=tf.TensorSpec([], tf.int32, "task"),
        agent=tf.TensorSpec([], tf.int32, "agent"),
        learner_update=tf.TensorSpec([], tf.int64, "learner_update"),
    )


def blank(unroll_signature: StoredUnroll) -> StoredUnroll:
    """An unroll without any transition, of NumPy arrays: every row opens an episode."""
    zeros = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), unroll_signature
    )
    return zeros._replace(is_first=np.ones_like(zeros.is_first))


def unpack(batch: Batch, frame_stack: int, agent_index: int = 0) -> types.Unroll:
    """A batch as the loss wants it: time-major, with stacks of K = `frame_stack` frames.

    Args:
      batch: see there.
      frame_stack: K.
      agent_index: of the agent that learns, in its sweep.
    """
    stored = batch.unrolls
    time_major = tf.nest.map_structure(
        _swap_time_and_batch, stored._replace(core_state=(), task=(), agent=(), learner_update=())
    )
    env_output = types.EnvOutput(
        observation=frame_stacking.stack_frames(
            time_major.frames, time_major.is_first, frame_stack
        ),
        reward=time_major.reward,
        discount=time_major.discount,
        is_first=time_major.is_first[frame_stack - 1 :],
        previous_action=time_major.previous_action,
        instruction=time_major.instruction,
    )
    agent_output = types.AgentOutput(time_major.action, time_major.logits)
    return types.Unroll(
        env_output,
        agent_output,
        stored.core_state,
        task=stored.task,
        is_online=batch.is_online,
        is_own=tf.equal(stored.agent, agent_index),
        weight=batch.weight,
    )


def _swap_time_and_batch(tensor: tf.Tensor) -> tf.Tensor:
    return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.rank)])


class UnrollBuffer:
    """The T + 1 rows that an actor is filling for N environments, and their frame history."""

    def __init__(self, unroll_signature: StoredUnroll, task_ids: np.ndarray, agent_index: int = 0):
        """Makes room for unrolls of a signature.

        Args:
          unroll_signature: of an unroll.
          task_ids: integers [N], the tasks that N environments play.
          agent_index: of the agent that acts, in its sweep.
        """
        self.num_envs = num_envs = len(task_ids)
        self._history = unroll_signature.frames.shape[0] - unroll_signature.reward.shape[0]
        self._task_ids = task_ids
        self._agent = np.int32(agent_index)
        self._games = np.arange(num_envs)
        self._core_states = {0: ()}
        self._arrays = {
            name: np.zeros([spec.shape[0], num_envs, *spec.shape[1:]], spec.dtype.as_numpy_dtype)
            for name, spec in unroll_signature._asdict().items()
            if isinstance(spec, tf.TensorSpec) and spec.shape.rank
        }
        self.last_row = unroll_signature.reward.shape[0] - 1

    def write_environment(self, row: int | np.ndarray, env_output: types.EnvOutput) -> None:
        """Stores observation, reward, discount, is_first, previous action and instruction.

        Args:
          row: of all environments, or integers [N], one for each.
          env_output: arrays [N, ...].
        """
        self._arrays["frames"][self._at(row + self._history)] = env_output.observation
        self._arrays["is_first"][self._at(row + self._history)] = env_output.is_first
        for name in ("reward", "discount", "previous_action", "instruction"):
            if name in self._arrays:
                self._arrays[name][self._at(row)] = getattr(env_output, name)

    def write_agent(self, row: int | np.ndarray, agent_output: types.AgentOutput) -> None:
        """Stores a row's action int32 [N] and logits float32 [N, A]."""
        self._arrays["action"][self._at(row)] = agent_output.action
        self._arrays["logits"][self._at(row)] = agent_output.logits

    def write_core_state(self, row: int, core_state: Any) -> None:
        """Stores the core state before a row, NumPy arrays [N, ...]; keeps row 0's and the last."""
        if row in (0, self.last_row):
            self._core_states[row] = core_state

    def unroll(self, index: int, learner_update: int) -> StoredUnroll:
        """The filled unroll of one environment (views)."""
        columns = {name: array[:, index] for name, array in self._arrays.items()}
        return StoredUnroll(
            **({"instruction": ()} | columns),
            core_state=tf.nest.map_structure(lambda state: state[index], self._core_states[0]),
            task=self._task_ids[index],
            agent=self._agent,
            learner_update=np.int64(learner_update),
        )

    def carry_over(self) -> None:
        """Makes the last row, with its history, the first row of the next unroll."""
        self._core_states[0] = self._core_states[self.last_row]
        self.carry_over_game(slice(None))

    def carry_over_game(self, index: int | slice) -> None:
        """Does so for one environment, without its core state."""
        for array in self._arrays.values():
            kept = array.shape[0] - self.last_row
            array[:kept, index] = array[self.last_row :, index].copy()

    def end_episode(self, index: int, rows: int) -> None:
        """Marks what follows the first `rows` rows of one environment as no transitions."""
        self._arrays["is_first"][self._history + rows :, index] = True

    def _at(self, row: int | np.ndarray) -> Any:
        return row if isinstance(row, int) else (row, self._games)
