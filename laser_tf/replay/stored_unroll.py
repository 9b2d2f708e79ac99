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
    next_core_state: Any  # before the last row, the next unroll's; () unless sequences are replayed
    task: Any  # int32 [], index of the task that was played
    agent: Any  # int32 [], index in its sweep of the agent that acted; 0 where it is alone
    learner_update: Any  # int64 [], updates behind the weights that acted at the first rows
    new_steps: Any  # int64 [], agent steps that it adds to those of the unrolls before it


WITHOUT_TIME = dict.fromkeys(
    ("core_state", "next_core_state", "task", "agent", "learner_update", "new_steps"), ()
)


class Batch(NamedTuple):
    """What the learner gets at once: unrolls, online ones first."""

    unrolls: StoredUnroll  # [B, ...]
    is_online: Any  # bool [B]
    key: Any  # uint64 [B], Reverb's keys of what was drawn from replay; 0 elsewhere
    weight: Any  # float32 [B], importance weights
    new_steps: Any  # int64 [], agent steps that the learner has not had before
    stored_states: Any = ()  # of sequences, [B, S + 1, ...]: see `types.Unroll`


def unweighted(unrolls: StoredUnroll, is_online: np.ndarray, new_steps: int = 0) -> Batch:
    """A batch in which all unrolls count alike."""
    size = len(is_online)
    keys, weights = np.zeros(size, np.uint64), np.ones(size, np.float32)
    return Batch(unrolls, is_online, keys, weights, np.int64(new_steps))


def signature(
    spec: types.EnvironmentSpec,
    core_state: Any,
    *,
    unroll_length: int,
    frame_stack: int,
    for_sequences: bool = False,
) -> StoredUnroll:
    """The `tf.TensorSpec`s of a stored unroll.

    Args:
      spec: of the environment.
      core_state: an agent's `initial_state(1)`.
      unroll_length: T.
      frame_stack: K.
      for_sequences: whether sequences are put together from the unrolls.
    """
    rows, frames, words = unroll_length + 1, unroll_length + frame_stack, spec.instruction_length

    def states(name: str) -> Any:
        return tf.nest.map_structure(
            lambda state: tf.TensorSpec(state.shape[1:], state.dtype, name), core_state
        )

    return StoredUnroll(
        frames=tf.TensorSpec([frames, *spec.frame_shape], tf.uint8, "frames"),
        is_first=tf.TensorSpec([frames], tf.bool, "is_first"),
        reward=tf.TensorSpec([rows], tf.float32, "reward"),
        discount=tf.TensorSpec([rows], tf.float32, "discount"),
        previous_action=tf.TensorSpec([rows], tf.int32, "previous_action"),
        action=tf.TensorSpec([rows], tf.int32, "action"),
        logits=tf.TensorSpec([rows, spec.num_actions], tf.float32, "logits"),
        instruction=tf.TensorSpec([rows, words], tf.int32, "instruction") if words else (),
        core_state=states("core_state"),
        next_core_state=states("next_core_state") if for_sequences else (),
        task=tf.TensorSpec([], tf.int32, "task"),
        agent=tf.TensorSpec([], tf.int32, "agent"),
        learner_update=tf.TensorSpec([], tf.int64, "learner_update"),
        new_steps=tf.TensorSpec([], tf.int64, "new_steps"),
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
    time_major = tf.nest.map_structure(_swap_time_and_batch, stored._replace(**WITHOUT_TIME))
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
        stored_states=tf.nest.map_structure(_swap_time_and_batch, batch.stored_states),
    )


def join(parts: StoredUnroll, frame_stack: int) -> tuple[StoredUnroll, Any]:
    """Puts sequences together from unrolls in a row, each one's last row the next one's first.

    Args:
      parts: tensors [B, S, ...], S unrolls in a row.
      frame_stack: K.

    Returns:
      Unrolls of S T transitions, [B, ...], and the core states before the first row of each part
      and before the last of all, [B, S + 1, ...].
    """

    def join_rows(column: tf.Tensor, history: int = 0) -> tf.Tensor:
        own = column[:, :, history + 1 :]
        size, unrolls, length, *shape = own.shape
        rows = tf.reshape(own, [size, unrolls * length, *shape])
        return tf.concat([column[:, 0, : history + 1], rows], axis=1)

    history = frame_stack - 1
    joined = tf.nest.map_structure(
        join_rows, parts._replace(frames=(), is_first=(), **WITHOUT_TIME)
    )._replace(
        frames=join_rows(parts.frames, history),
        is_first=join_rows(parts.is_first, history),
        core_state=tf.nest.map_structure(lambda state: state[:, 0], parts.core_state),
        task=parts.task[:, -1],
        agent=parts.agent[:, -1],
        learner_update=parts.learner_update[:, -1],
        new_steps=tf.reduce_sum(parts.new_steps, axis=1),
    )
    states = tf.nest.map_structure(
        lambda state, next_: tf.concat([state[:, :1], next_], axis=1),
        parts.core_state,
        parts.next_core_state,
    )
    return joined, states


def _swap_time_and_batch(tensor: tf.Tensor) -> tf.Tensor:
    return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.rank)])
