"""Reverb's tables of a run: FIFO replay for everybody, one queue for each learner."""

from collections.abc import Sequence
from typing import Any

import reverb
import tensorflow as tf
import tree

from laser_tf.replay import replay_config, stored_unroll


def make_tables(
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
    queues: Sequence[str] = (replay_config.ONLINE,),
) -> list[reverb.Table]:
    """The tables of one or more learners.

    A batch may already be drawn when replay holds one unroll: a limit that waited for more would
    stall the learner, and with it the queue and the actors that fill replay.

    Args:
      config: see there.
      signature: of an unroll.
      queues: one for each learner.
    """
    signatures = signatures_of(config, signature)
    online = [
        reverb.Table.queue(queue, config.queue_capacity, signature=signatures[replay_config.ONLINE])
        for queue in queues
    ]
    if config.replay_table is None:
        return online
    if config.replay_table == replay_config.NEW_SEQUENCES:
        size, new = config.queue_capacity, signatures[config.replay_table]
        return [*online, reverb.Table.queue(config.replay_table, size, signature=new)]
    exponent = exponent_of(config)
    replay = reverb.Table(
        name=config.replay_table,
        sampler=(
            reverb.selectors.Prioritized(exponent) if exponent else reverb.selectors.Uniform()
        ),
        remover=reverb.selectors.Fifo(),
        max_size=config.capacity // config.steps_per_item,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=signatures[config.replay_table],
    )
    return [*online, replay]


def exponent_of(config: replay_config.ReplayConfig) -> float:
    """What priorities are raised to where replay is drawn; 0 where it goes by none.

    Args:
      config: of the tables.
    """
    if config.replay_table == replay_config.EPISODES:
        return 1.0  # priorities are 1 for an episode and 0 for what marks its room
    if config.replay_table == replay_config.NEW_SEQUENCES:
        return 0.0  # they are drawn in turn
    return config.priority_exponent


def signatures_of(
    config: replay_config.ReplayConfig, signature: stored_unroll.StoredUnroll
) -> dict[str, Any]:
    """What the items of a learner's queue, under `ONLINE`, and of its replay table look like.

    Args:
      config: see there.
      signature: of an unroll.
    """
    # Whoever learns from replay alone only counts what is new.
    signatures = {
        replay_config.ONLINE: (
            stored_unroll.count_of(signature) if config.steps_per_update else signature
        )
    }
    table = config.replay_table
    if table == replay_config.REPLAY:
        signatures[table] = signature
    elif table == replay_config.EPISODES:
        signatures[table] = several(signature._replace(core_state=()), None)
    elif config.sequence_length:
        signatures[table] = several(signature, config.steps_per_entry // config.unroll_length)
    return signatures


def several(signature: stored_unroll.StoredUnroll, unrolls: int | None) -> Any:
    """Of n unrolls in a row, [n, ...]; None: of any number."""
    return tree.map_structure(
        lambda spec: tf.TensorSpec([unrolls, *spec.shape], spec.dtype, spec.name), signature
    )


def difference(there: Any, here: Any) -> str:
    """The first difference of two tables' signatures, in words; "" where they are alike."""
    theirs, ours = ([_describe(s) for s in tf.nest.flatten(spec)] for spec in (there, here))
    for pair in zip(theirs, ours, strict=False):
        if pair[0] != pair[1]:
            return f"{pair[0]} there, {pair[1]} here"
    if len(theirs) != len(ours):
        return f"{len(theirs)} columns there, {len(ours)} columns here"
    return ""


def _describe(spec: tf.TensorSpec) -> str:
    return f"{spec.name} {spec.dtype.name} {list(spec.shape)}"
