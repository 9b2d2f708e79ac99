"""Datasets of online and replayed experience on a Reverb server."""

from collections.abc import Callable
from typing import Any

import numpy as np
import reverb
import tensorflow as tf

from laser_tf.replay import stored_unroll
from laser_tf.replay.schemes import table_replay

_TIMEOUT_SECONDS = 60  # For the first answer of a server.


def mixed_batches(
    server_address: str, scheme: table_replay.TableReplay, queue: str
) -> tf.data.Dataset:
    """Returns endless `stored_unroll.Batch`es, online entries first (LASER, section 3).

    Each batch holds `online_entries` unrolls from the queue, each returned once, and
    `replayed_entries` sampled from replay. Reverb's selectors take no seed, so samples are not
    reproducible.

    Args:
      server_address: "host:port" of the Reverb server.
      scheme: Replay scheme of the tables.
      queue: The learner's queue.
    """
    online = online_batches(server_address, queue, scheme.online_entries, scheme.unroll_length)

    def mix(online: stored_unroll.Batch, replayed: stored_unroll.Batch) -> stored_unroll.Batch:
        mixed = tf.nest.map_structure(
            lambda *parts: tf.concat(parts, axis=0),
            online._replace(new_steps=()),
            replayed._replace(new_steps=()),
        )
        return mixed._replace(new_steps=online.new_steps)

    return _mapped(tf.data.Dataset.zip((online, replayed_batches(server_address, scheme))), mix)


def online_batches(
    server_address: str, queue: str, entries: int, unroll_length: int
) -> tf.data.Dataset:
    """Returns endless `stored_unroll.Batch`es of new unrolls.

    Args:
      server_address: "host:port" of the Reverb server.
      queue: The learner's queue.
      entries: Unrolls in a batch.
      unroll_length: T.
    """
    is_online = np.ones(entries, bool)
    # Few samples in flight: what waits in a buffer grows stale, and is lost when the run stops.
    return _mapped(
        unrolls(server_address, queue, entries, in_flight=4),
        lambda new: stored_unroll.unweighted(new, is_online, entries * unroll_length),
    )


def replayed_batches(server_address: str, scheme: table_replay.TableReplay) -> tf.data.Dataset:
    """Returns endless `stored_unroll.Batch`es of `replayed_entries` unrolls or sequences.

    Args:
      server_address: "host:port" of the Reverb server.
      scheme: Replay scheme of the tables.
    """
    assert scheme.replay_table
    entries = scheme.replayed_entries
    samples = _samples(server_address, scheme.replay_table, in_flight=2 * entries)

    def to_batch(sample: reverb.ReplaySample) -> stored_unroll.Batch:
        info = sample.info
        return replayed_batch(
            stored_unroll.Drawn(sample.data, info.key, info.probability, info.table_size), scheme
        )

    return _mapped(samples.batch(entries, drop_remainder=True), to_batch)


def replayed_batch(
    drawn: stored_unroll.Drawn, scheme: table_replay.TableReplay
) -> stored_unroll.Batch:
    """Converts samples to a batch: joins sequences, weights entries, none of them new.

    Args:
      drawn: Tensors of samples [B, ...], sequences [B, S, ...].
      scheme: Replay scheme of the samples.
    """
    unrolls, states = drawn.unrolls, ()
    if scheme.uses_sequences:
        unrolls, states = stored_unroll.join(unrolls)
    if scheme.core_state == "zero":
        zeros = tf.nest.map_structure(tf.zeros_like, unrolls.core_state)
        unrolls = unrolls._replace(core_state=zeros)
    is_online = np.zeros(drawn.key.shape[0], bool)
    batch = stored_unroll.unweighted(unrolls, is_online)._replace(stored_states=states)
    if not scheme.uses_priorities:
        return batch
    weights = importance_weights(drawn, scheme.importance_exponent)
    return batch._replace(key=drawn.key, importance_weight=weights / tf.reduce_max(weights))


def importance_weights(drawn: stored_unroll.Drawn, exponent: float) -> tf.Tensor:
    """Returns (1 / (N P(i)))^beta (Schaul et al. 2015, section 3.4), not normalised by the largest.

    Args:
      drawn: Samples with their probabilities P and the table's size N.
      exponent: beta; 1 corrects fully for the unequal probabilities.

    Returns:
      float32 [entries].
    """
    ratios = 1 / (tf.cast(drawn.table_size, tf.float64) * drawn.probability)
    return tf.cast(ratios, tf.float32) ** exponent


def items(server_address: str, table: str, in_flight: int = 4) -> tf.data.Dataset:
    """Returns the items of a table one by one, endlessly.

    Args:
      server_address: "host:port" of the Reverb server.
      table: Name of the table.
      in_flight: Max number of items that are fetched ahead.
    """
    return _mapped(_samples(server_address, table, in_flight), lambda sample: sample.data)


def unrolls(server_address: str, table: str, entries: int, in_flight: int) -> tf.data.Dataset:
    """Returns endless batches of a table's items, e.g. `StoredUnroll [entries, ...]`.

    Args:
      server_address: "host:port" of the Reverb server.
      table: Name of the table.
      entries: Unrolls in a batch.
      in_flight: Max number of unrolls that are fetched ahead.
    """
    return items(server_address, table, in_flight).batch(entries, drop_remainder=True)


def _samples(server_address: str, table: str, in_flight: int) -> tf.data.Dataset:
    return reverb.TrajectoryDataset.from_table_signature(
        server_address,
        table,
        max_in_flight_samples_per_worker=in_flight,
        num_workers_per_iterator=1,
        get_signature_timeout_secs=_TIMEOUT_SECONDS,
    )


def _mapped(dataset: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
    # Not rewritten by AutoGraph, which leaves a file in the temporary folder for each function, as
    # our processes end by os._exit; no branch here depends on a tensor's value.
    return dataset.map(tf.autograph.experimental.do_not_convert(function))
