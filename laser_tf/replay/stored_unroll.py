"""The unroll of one environment that an item of replay holds, with images as single frames.

The learner stacks frames, since stored stacks of K frames would take K times the memory. K - 1
frames before step 0 are the history of the first stacks.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from laser_tf import observations, types
from laser_tf.replay import frame_stacking


class StoredUnroll(NamedTuple):
    """One unroll, or a batch of unrolls `[B, ...]`; time steps as in `laser_tf.types`."""

    env_output: types.EnvOutput  # [T + 1, ...]; images and `is_first` [K - 1 + T + 1, ...]
    agent_output: types.AgentOutput  # [T + 1, ...]
    core_state: Any  # core state before step 0
    next_core_state: Any  # core state before the last step; () unless sequences are stored
    task: Any  # int32 [], index of the environment's task
    member: Any  # int32 [], index of the sweep's member that acted; 0 in a single run
    learner_update: Any  # int64 [], updates of the actor's weights when the unroll was complete
    new_steps: Any  # int64 [], agent steps that no earlier unroll contains
    stream: Any  # int64 [], random number of the stream of unrolls of an environment
    number: Any  # int64 [], index of the unroll in its stream


class UnrollHeader(NamedTuple):
    """Fields of an unroll that the queue holds if all batches are replayed."""

    new_steps: Any
    stream: Any
    number: Any


def header_of(unroll: StoredUnroll) -> UnrollHeader:
    """Returns the header of an unroll, of its signature, or of its columns."""
    return UnrollHeader(unroll.new_steps, unroll.stream, unroll.number)


class Batch(NamedTuple):
    """Batch of the learner: unrolls, online ones first."""

    unrolls: StoredUnroll  # [B, ...]
    is_online: Any  # bool [B]
    key: Any  # uint64 [B], keys of the samples from replay; 0 for other entries
    importance_weight: Any  # float32 [B]
    new_steps: Any  # int64 [], agent steps that no earlier batch contains
    stored_states: Any = ()  # core states of sequences, [B, S + 1, ...]: see `types.Unroll`


class ReplaySample(NamedTuple):
    """Samples from replay with their probabilities."""

    unrolls: StoredUnroll  # [B, ...]; sequences are [B, S, ...], S unrolls in a row
    key: Any  # uint64 [B]
    probability: Any  # float64 [B]
    table_size: Any  # int64 [B], number of items in the table


def unweighted(unrolls: StoredUnroll, is_online: np.ndarray, new_steps: int = 0) -> Batch:
    """Returns a batch in which all unrolls have the weight 1."""
    size = len(is_online)
    keys, weights = np.zeros(size, np.uint64), np.ones(size, np.float32)
    return Batch(unrolls, is_online, keys, weights, np.int64(new_steps))


def experience_age(batch: Batch, learner_updates: int, member_index: int) -> dict[str, float]:
    """Returns the mean policy lag of online entries and the mean age of replayed entries.

    Both count the updates since `learner_update`. Entries of other members and padding have no age.
    A metric without any age is left out.
    """
    unrolls = batch.unrolls
    has_age = (unrolls.member == member_index) & ~np.all(unrolls.env_output.is_first, axis=1)
    ages = learner_updates - unrolls.learner_update
    parts = {
        "replay/policy_lag_updates": ages[has_age & batch.is_online],
        "replay/age_updates": ages[has_age & ~batch.is_online],
    }
    return {name: float(ages.mean()) for name, ages in parts.items() if ages.size}


def signature(
    spec: types.EnvironmentSpec,
    agent_output: types.AgentOutput,
    core_state: Any,
    *,
    unroll_length: int,
    frame_stack: int,
    for_sequences: bool = False,
) -> StoredUnroll:
    """Returns the `tf.TensorSpec`s of a stored unroll, from specs of one step and a core state."""
    steps, with_history = unroll_length + 1, unroll_length + frame_stack

    def named(nest: Any, name: str, *leading: int) -> Any:
        return tf.nest.map_structure(
            lambda leaf: tf.TensorSpec([*leading, *leaf.shape], leaf.dtype, name), nest
        )

    def observed(leaf: specs.Array) -> tf.TensorSpec:
        length = with_history if observations.is_image(leaf) else steps
        return tf.TensorSpec([length, *leaf.shape], leaf.dtype, leaf.name or "observation")

    env_output = types.EnvOutput(
        observation=tf.nest.map_structure(observed, spec.observation),
        reward=tf.TensorSpec([steps], tf.float32, "reward"),
        discount=tf.TensorSpec([steps], tf.float32, "discount"),
        is_first=tf.TensorSpec([with_history], tf.bool, "is_first"),
        previous_action=named(spec.action, "previous_action", steps),
    )
    fields = zip(agent_output._fields, agent_output, strict=True)
    int64s = ("learner_update", "new_steps", "stream", "number")
    return StoredUnroll(
        env_output=env_output,
        agent_output=types.AgentOutput(*(named(part, name, steps) for name, part in fields)),
        core_state=named(core_state, "core_state"),
        next_core_state=named(core_state, "next_core_state") if for_sequences else (),
        **{name: tf.TensorSpec([], tf.int32, name) for name in ("task", "member")},
        **{name: tf.TensorSpec([], tf.int64, name) for name in int64s},
    )


def num_steps(env_output: types.EnvOutput) -> int:
    """Returns T + 1 of a stored unroll without a batch axis; rewards never have a history."""
    return env_output.reward.shape[0]


def begins_episode(unroll: StoredUnroll) -> bool:
    """Returns whether step 0 of an unroll without a batch axis opens an episode."""
    return bool(unroll.env_output.is_first[-num_steps(unroll.env_output)])


def blank(unroll_signature: StoredUnroll) -> StoredUnroll:
    """Returns arrays of an unroll without any transition: every step opens an episode."""
    zeros = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), unroll_signature
    )
    env_output = zeros.env_output._replace(is_first=np.ones_like(zeros.env_output.is_first))
    return zeros._replace(env_output=env_output)


def unpack(batch: Batch, member_index: int = 0) -> types.Unroll:
    """Converts a batch of tensors to the loss's unroll: time-major, with stacked frames."""
    stored = batch.unrolls
    env_output, agent_output, stored_states = tf.nest.map_structure(
        lambda leaf: tf.transpose(leaf, [1, 0, *range(2, leaf.shape.rank)]),
        (stored.env_output, stored.agent_output, batch.stored_states),
    )
    return types.Unroll(
        types.EnvOutput(*frame_stacking.stack_observations(env_output)),
        types.AgentOutput(*agent_output),
        stored.core_state,
        task=stored.task,
        is_online=batch.is_online,
        is_own=tf.equal(stored.member, member_index),
        importance_weight=batch.importance_weight,
        stored_states=stored_states,
    )


def join(parts: StoredUnroll) -> tuple[StoredUnroll, Any]:
    """Joins S successive unrolls, [B, S, ...]. The last step of each is the first of the next.

    Returns:
      Unrolls of S * T transitions, [B, ...], and the core states before the first step of each part
      and before the last of all, [B, S + 1, ...].
    """
    steps = parts.env_output.reward.shape[2]

    def join_steps(leaf: tf.Tensor) -> tf.Tensor:
        history = leaf.shape[2] - steps  # frames that the part before holds, too
        own = leaf[:, :, history + 1 :]
        size, unrolls, length, *shape = own.shape
        joined = tf.reshape(own, [size, unrolls * length, *shape])
        return tf.concat([leaf[:, 0, : history + 1], joined], axis=1)

    env_output, agent_output = tf.nest.map_structure(
        join_steps, (parts.env_output, parts.agent_output)
    )
    names = ("task", "member", "learner_update", "stream", "number")
    joined = parts._replace(
        env_output=env_output,
        agent_output=agent_output,
        core_state=tf.nest.map_structure(lambda state: state[:, 0], parts.core_state),
        next_core_state=(),
        new_steps=tf.reduce_sum(parts.new_steps, axis=1),
        **{name: getattr(parts, name)[:, -1] for name in names},
    )
    states = tf.nest.map_structure(
        lambda state, next_: tf.concat([state[:, :1], next_], axis=1),
        parts.core_state,
        parts.next_core_state,
    )
    return joined, states
