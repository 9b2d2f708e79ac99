"""What one item of replay holds: an unroll of one environment, images as single frames.

Frames are stored once and stacked in the learner: an Atari observation of four frames would take
four times the memory. K - 1 frames before step 0 come along as the history of the first stacks.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from laser_tf import observations, types
from laser_tf.replay import frame_stacking


class StoredUnroll(NamedTuple):
    """One unroll (or a batch of them, `[B, ...]`); time steps as in `laser_tf.types`."""

    env_output: types.EnvOutput  # [T + 1, ...]; images and `is_first` [K - 1 + T + 1, ...]
    agent_output: types.AgentOutput  # [T + 1, ...]
    core_state: Any  # before step 0
    next_core_state: Any  # before the last step, the next unroll's; () unless sequences are stored
    task: Any  # int32 [], index of the task that was played
    member: Any  # int32 [], index of the sweep's member that acted; 0 where it is alone
    learner_update: Any  # int64 [], updates behind the weights that acted at the first steps
    new_steps: Any  # int64 [], agent steps that it adds to those of the unrolls before it
    actor: Any  # int64 [], drawn at random for each environment of an actor's process
    number: Any  # int64 [], of the unroll among that environment's, from 0


class Count(NamedTuple):
    """What the queue holds of an unroll for a learner from replay alone; see `StoredUnroll`."""

    new_steps: Any
    actor: Any
    number: Any


def count_of(unroll: StoredUnroll) -> Count:
    """An unroll's count; of its signature, or of its columns, likewise."""
    return Count(unroll.new_steps, unroll.actor, unroll.number)


class Batch(NamedTuple):
    """What the learner gets at once: unrolls, online ones first."""

    unrolls: StoredUnroll  # [B, ...]
    is_online: Any  # bool [B]
    key: Any  # uint64 [B], the keys of what was drawn from replay; 0 elsewhere
    importance_weight: Any  # float32 [B]
    new_steps: Any  # int64 [], agent steps that the learner has not had before
    stored_states: Any = ()  # of sequences, [B, S + 1, ...]: see `types.Unroll`


class Drawn(NamedTuple):
    """What was drawn from replay, and how probable that was."""

    unrolls: StoredUnroll  # [B, ...]; sequences are [B, S, ...], S unrolls in a row
    key: Any  # uint64 [B]
    probability: Any  # float64 [B]
    table_size: Any  # int64 [B], what there was to draw from


def unweighted(unrolls: StoredUnroll, is_online: np.ndarray, new_steps: int = 0) -> Batch:
    """A batch in which all unrolls count alike."""
    size = len(is_online)
    keys, weights = np.zeros(size, np.uint64), np.ones(size, np.float32)
    return Batch(unrolls, is_online, keys, weights, np.int64(new_steps))


def signature(
    spec: types.EnvironmentSpec,
    agent_output: types.AgentOutput,
    core_state: Any,
    *,
    unroll_length: int,
    frame_stack: int,
    for_sequences: bool = False,
) -> StoredUnroll:
    """The `tf.TensorSpec`s of a stored unroll.

    Args:
      spec: of the environment.
      agent_output: `TensorSpec`s [...] of what the agent answers at one step.
      core_state: `TensorSpec`s [...] of its core state.
      unroll_length: T.
      frame_stack: K.
      for_sequences: whether sequences are put together from the unrolls.
    """
    steps, with_history = unroll_length + 1, unroll_length + frame_stack
    env_output = types.EnvOutput(
        observation=tf.nest.map_structure(
            lambda leaf: tf.TensorSpec(
                [with_history if observations.is_image(leaf) else steps, *leaf.shape],
                leaf.dtype,
                leaf.name or "observation",
            ),
            spec.observation,
        ),
        reward=tf.TensorSpec([steps], tf.float32, "reward"),
        discount=tf.TensorSpec([steps], tf.float32, "discount"),
        is_first=tf.TensorSpec([with_history], tf.bool, "is_first"),
        previous_action=tf.TensorSpec(
            [steps, *spec.action.shape], spec.action.dtype, "previous_action"
        ),
    )

    def named(specs: Any, name: str, *leading: int) -> Any:
        return tf.nest.map_structure(
            lambda leaf: tf.TensorSpec([*leading, *leaf.shape], leaf.dtype, name), specs
        )

    return StoredUnroll(
        env_output=env_output,
        agent_output=types.AgentOutput(
            *(
                named(part, name, steps)
                for name, part in zip(agent_output._fields, agent_output, strict=True)
            )
        ),
        core_state=named(core_state, "core_state"),
        next_core_state=named(core_state, "next_core_state") if for_sequences else (),
        task=tf.TensorSpec([], tf.int32, "task"),
        member=tf.TensorSpec([], tf.int32, "member"),
        learner_update=tf.TensorSpec([], tf.int64, "learner_update"),
        new_steps=tf.TensorSpec([], tf.int64, "new_steps"),
        actor=tf.TensorSpec([], tf.int64, "actor"),
        number=tf.TensorSpec([], tf.int64, "number"),
    )


def num_steps(env_output: types.EnvOutput) -> int:
    """T + 1 of a stored unroll without a batch axis: its reward alone never has a history."""
    return env_output.reward.shape[0]


def begins_episode(unroll: StoredUnroll) -> bool:
    """Whether step 0 of an unroll without a batch axis is an episode's first."""
    return bool(unroll.env_output.is_first[-num_steps(unroll.env_output)])


def blank(unroll_signature: StoredUnroll) -> StoredUnroll:
    """An unroll without any transition, of NumPy arrays: every step opens an episode."""
    zeros = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), unroll_signature
    )
    env_output = zeros.env_output._replace(is_first=np.ones_like(zeros.env_output.is_first))
    return zeros._replace(env_output=env_output)


def unpack(batch: Batch, member: int = 0) -> types.Unroll:
    """A batch as the loss wants it: time-major, with stacked frames.

    Args:
      batch: see there.
      member: index of the agent that learns, in its sweep.
    """
    stored = batch.unrolls
    env_output, agent_output, stored_states = tf.nest.map_structure(
        _swap_time_and_batch, (stored.env_output, stored.agent_output, batch.stored_states)
    )
    return types.Unroll(
        types.EnvOutput(*frame_stacking.stack_observations(env_output)),
        types.AgentOutput(*agent_output),
        stored.core_state,
        task=stored.task,
        is_online=batch.is_online,
        is_own=tf.equal(stored.member, member),
        importance_weight=batch.importance_weight,
        stored_states=stored_states,
    )


def join(parts: StoredUnroll) -> tuple[StoredUnroll, Any]:
    """Puts sequences together from unrolls in a row, each one's last step the next one's first.

    Args:
      parts: tensors [B, S, ...], S unrolls in a row.

    Returns:
      Unrolls of S T transitions, [B, ...], and the core states before the first step of each part
      and before the last of all, [B, S + 1, ...].
    """
    steps = parts.env_output.reward.shape[2]

    def join_steps(leaf: tf.Tensor) -> tf.Tensor:
        history = leaf.shape[2] - steps  # of frames, which the part before holds as its own
        own = leaf[:, :, history + 1 :]
        size, unrolls, length, *shape = own.shape
        joined = tf.reshape(own, [size, unrolls * length, *shape])
        return tf.concat([leaf[:, 0, : history + 1], joined], axis=1)

    joined = parts._replace(
        env_output=tf.nest.map_structure(join_steps, parts.env_output),
        agent_output=tf.nest.map_structure(join_steps, parts.agent_output),
        core_state=tf.nest.map_structure(lambda state: state[:, 0], parts.core_state),
        next_core_state=(),
        task=parts.task[:, -1],
        member=parts.member[:, -1],
        learner_update=parts.learner_update[:, -1],
        new_steps=tf.reduce_sum(parts.new_steps, axis=1),
        actor=parts.actor[:, -1],
        number=parts.number[:, -1],
    )
    states = tf.nest.map_structure(
        lambda state, next_: tf.concat([state[:, :1], next_], axis=1),
        parts.core_state,
        parts.next_core_state,
    )
    return joined, states


def _swap_time_and_batch(tensor: tf.Tensor) -> tf.Tensor:
    return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.rank)])
