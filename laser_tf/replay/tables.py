"""Reverb tables: first in, first out replay for all learners, and a queue for each."""

from collections.abc import Sequence
from typing import Any

import reverb
import tensorflow as tf
import tree

from laser_tf.replay import stored_unroll
from laser_tf.replay.schemes import base


def make_tables(
    scheme: base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
    queues: Sequence[str] = (base.QUEUE,),
) -> list[reverb.Table]:
    """Creates the tables of a server: all but `replay_table` are queues."""
    signatures = scheme.signatures(signature)
    queue_signatures = dict.fromkeys(queues, signatures.pop(base.QUEUE)) | signatures
    replayed = queue_signatures.pop(scheme.replay_table, None)
    made = [
        reverb.Table.queue(queue, scheme.queue_capacity, signature=queue_signature)
        for queue, queue_signature in queue_signatures.items()
    ]
    if scheme.replay_table:
        exponent = scheme.sampler_exponent
        sampler = reverb.selectors.Prioritized(exponent) if exponent else None
        made.append(
            reverb.Table(
                name=scheme.replay_table,
                sampler=sampler or reverb.selectors.Uniform(),
                remover=reverb.selectors.Fifo(),
                max_size=scheme.max_items,
                # Sampling starts when replay holds one item. A higher minimum would block the
                # learner, then the queue, then the actors that fill replay.
                rate_limiter=reverb.rate_limiters.MinSize(1),
                signature=replayed,
            )
        )
    return made


def stacked(signature: stored_unroll.StoredUnroll, unrolls: int | None) -> Any:
    """Returns the signature of successive unrolls, [unrolls, ...]; None means any number."""
    return tree.map_structure(
        lambda spec: tf.TensorSpec([unrolls, *spec.shape], spec.dtype, spec.name), signature
    )


def difference(there: Any, here: Any) -> str:
    """Returns the first difference of two tables' signatures in words, or ""."""
    theirs, ours = ([_describe(s) for s in tf.nest.flatten(spec)] for spec in (there, here))
    for pair in zip(theirs, ours, strict=False):
        if pair[0] != pair[1]:
            return f"{pair[0]} there, {pair[1]} here"
    if len(theirs) != len(ours):
        return f"{len(theirs)} columns there, {len(ours)} columns here"
    return ""


def _describe(spec: tf.TensorSpec) -> str:
    return f"{spec.name} {spec.dtype.name} {list(spec.shape)}"
