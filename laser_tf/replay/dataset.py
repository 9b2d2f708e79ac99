"""Datasets of online and replayed experience on a Reverb server."""

from collections.abc import Callable
from typing import Any

import numpy as np
import reverb
import tensorflow as tf

from laser_tf.replay import stored_unroll
from laser_tf.replay.schemes import base, table_replay

_TIMEOUT_SECONDS = 60  # For the first answer of a server.


def online_batches(server_address: str, scheme: base.ReplayScheme, queue: str) -> tf.data.Dataset:
    """Returns endless `stored_unroll.Batch`es of `online_entries` new unrolls of a queue."""
    entries = scheme.online_entries
    is_online, new_steps = np.ones(entries, bool), entries * scheme.unroll_length
    return items(
        server_address,
        queue,
        entries,
        convert=lambda new: stored_unroll.unweighted(new.data, is_online, new_steps),
    )


def replayed_batches(
    server_address: str, scheme: table_replay.TableReplay, empty_seconds: float | None = None
) -> tf.data.Dataset:
    """Returns `stored_unroll.Batch`es of `replayed_entries` unrolls or sequences.

    They end once replay has been empty for `empty_seconds`; None: never.
    """
    entries = scheme.replayed_entries

    def to_batch(sample: reverb.ReplaySample) -> stored_unroll.Batch:
        info = sample.info
        return replayed_batch(
            stored_unroll.ReplaySample(sample.data, info.key, info.probability, info.table_size),
            scheme,
        )

    table = scheme.replay_table
    return items(server_address, table, entries, 2 * entries, to_batch, empty_seconds)


def replayed_batch(
    samples: stored_unroll.ReplaySample, scheme: table_replay.TableReplay
) -> stored_unroll.Batch:
    """Converts samples to a batch: joins sequences and weights entries.

    The weights are (1 / (N P(i)))^beta over the largest of the batch (Schaul et al. 2015, section
    3.4), for the size N of the table and probabilities P.
    """
    unrolls, states = samples.unrolls, ()
    if scheme.uses_sequences:
        unrolls, states = stored_unroll.join(unrolls)
    if scheme.core_state == "zero":
        zeros = tf.nest.map_structure(tf.zeros_like, unrolls.core_state)
        unrolls = unrolls._replace(core_state=zeros)
    is_online = np.zeros(samples.key.shape[0], bool)
    batch = stored_unroll.unweighted(unrolls, is_online)._replace(stored_states=states)
    if not scheme.uses_priorities:
        return batch
    ratios = 1 / (tf.cast(samples.table_size, tf.float64) * samples.probability)
    weights = tf.cast(ratios, tf.float32) ** scheme.importance_exponent
    return batch._replace(key=samples.key, importance_weight=weights / tf.reduce_max(weights))


def items(
    server_address: str,
    table: str,
    entries: int | None = None,
    in_flight: int = 4,
    convert: Callable[[reverb.ReplaySample], Any] = lambda sample: sample.data,
    empty_seconds: float | None = None,
) -> tf.data.Dataset:
    """Returns the items of a table, in batches of `entries` items unless that is None.

    At most `in_flight` items are fetched ahead. Online items that wait in a buffer grow stale, and
    are lost when the run stops. `convert` converts a sample, or a batch of samples. The dataset
    ends once the table has been empty for `empty_seconds`; None: never.
    """
    samples = reverb.TrajectoryDataset.from_table_signature(
        server_address,
        table,
        max_in_flight_samples_per_worker=in_flight,
        num_workers_per_iterator=1,
        rate_limiter_timeout_ms=-1 if empty_seconds is None else int(1_000 * empty_seconds),
        get_signature_timeout_secs=_TIMEOUT_SECONDS,
    )
    if entries:
        samples = samples.batch(entries, drop_remainder=True)
    return mapped(samples, convert)


def mapped(dataset: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
    """Maps a function without AutoGraph, whose temporary files would stay after os._exit."""
    return dataset.map(tf.autograph.experimental.do_not_convert(function))
