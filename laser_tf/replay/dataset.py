"""The learner's stream of batches: online and replayed unrolls side by side."""

from collections.abc import Callable
from typing import Any

import numpy as np
import reverb
import tensorflow as tf

from laser_tf.replay import replay_config, stored_unroll

_TIMEOUT_SECONDS = 60  # for a server's first answer


def make_dataset(
    server_address: str, config: replay_config.ReplayConfig, queue: str
) -> tf.data.Dataset:
    """Endless `stored_unroll.Batch`es, online entries first.

    Each batch holds exactly `online_entries` unrolls from the queue, each seen once, and
    `replay_entries` drawn from replay (LASER, section 3). Reverb's selectors take no seed, so which
    unrolls are drawn is not reproducible.

    Args:
      server_address: "host:port" of the Reverb server.
      config: the tables' configuration, with `core_state` "stored" or "zero" and online entries.
      queue: the learner's.
    """
    is_online = np.ones(config.online_entries, bool)
    online = _mapped(
        online_unrolls(server_address, config, queue),
        lambda unrolls: stored_unroll.unweighted(unrolls, is_online, config.fresh_steps_per_update),
    )
    if not config.replay_entries:
        return online

    def mix(online: stored_unroll.Batch, replayed: stored_unroll.Batch) -> stored_unroll.Batch:
        mixed = tf.nest.map_structure(
            lambda *parts: tf.concat(parts, axis=0),
            online._replace(new_steps=()),
            replayed._replace(new_steps=()),
        )
        return mixed._replace(new_steps=online.new_steps)

    return _mapped(tf.data.Dataset.zip((online, replayed_batches(server_address, config))), mix)


def replayed_batches(server_address: str, config: replay_config.ReplayConfig) -> tf.data.Dataset:
    """Endless `stored_unroll.Batch`es of `replay_entries` unrolls or sequences, none of them new.

    Args:
      server_address: "host:port" of the Reverb server.
      config: the tables' configuration, with `core_state` "stored" or "zero".
    """
    drawn = replayed_entries(server_address, config, config.replay_entries)
    return _mapped(drawn, _with_normalised_weights) if config.priority_exponent else drawn


def _with_normalised_weights(batch: stored_unroll.Batch) -> stored_unroll.Batch:
    weights = batch.importance_weight
    return batch._replace(importance_weight=weights / tf.reduce_max(weights))


def replayed_entries(
    server_address: str, config: replay_config.ReplayConfig, entries: int
) -> tf.data.Dataset:
    """As `replayed_batches`, but of any size, with weights that may exceed 1.

    Args:
      server_address: "host:port" of the Reverb server.
      config: the tables' configuration, with `core_state` "stored" or "zero".
      entries: unrolls or sequences, of a batch or a part of one.
    """
    samples = _samples(server_address, config.replay_table, entries, in_flight=2 * entries)

    def to_batch(sample: reverb.ReplaySample) -> stored_unroll.Batch:
        info = sample.info
        return _batch_of(
            stored_unroll.Drawn(sample.data, info.key, info.probability, info.table_size), config
        )

    return _mapped(samples, to_batch)


def prioritised_batch(
    drawn: stored_unroll.Drawn, config: replay_config.ReplayConfig
) -> stored_unroll.Batch:
    """What is drawn from a store, as a batch like those of `replayed_batches`.

    Args:
      drawn: tensors of sequences [B, S, ...].
      config: of the store.
    """
    return _with_normalised_weights(_batch_of(drawn, config))


def _batch_of(
    drawn: stored_unroll.Drawn, config: replay_config.ReplayConfig
) -> stored_unroll.Batch:
    unrolls, states = drawn.unrolls, ()
    if config.sequence_length:
        unrolls, states = stored_unroll.join(unrolls)
    batch = stored_unroll.unweighted(
        _with_configured_state(unrolls, config), np.zeros(drawn.key.shape[0], bool)
    )._replace(stored_states=states)
    if not config.priority_exponent:
        return batch
    weights = importance_weights(drawn, config.importance_exponent)
    return batch._replace(key=drawn.key, importance_weight=weights)


def importance_weights(drawn: stored_unroll.Drawn, exponent: float) -> tf.Tensor:
    """(1 / (N P(i)))^beta (Schaul et al. 2015, section 3.4), to be divided by the batch's largest.

    Args:
      drawn: entries, with their probabilities P and the table's size N.
      exponent: beta; 1 corrects wholly for drawing some more often than others.

    Returns:
      float32 [entries].
    """
    ratios = 1 / (tf.cast(drawn.table_size, tf.float64) * drawn.probability)
    return tf.cast(ratios, tf.float32) ** exponent


def online_unrolls(
    server_address: str, config: replay_config.ReplayConfig, queue: str
) -> tf.data.Dataset:
    """Endless batches `StoredUnroll [online_entries, ...]` of the learner's `queue`."""
    # Few samples in flight: what waits in a buffer grows stale, and is lost when the run stops.
    return unrolls(server_address, queue, config.online_entries, in_flight=4)


def counts(server_address: str, queue: str) -> tf.data.Dataset:
    """What is new: a `stored_unroll.Count` for every unroll."""
    return _one_by_one(server_address, queue, in_flight=4)


def new_sequences(server_address: str) -> tf.data.Dataset:
    """Every new sequence once, `StoredUnroll [S, ...]`, for a learner that keeps them itself."""
    return _one_by_one(server_address, replay_config.NEW_SEQUENCES, in_flight=4)


def episodes(server_address: str) -> tf.data.Dataset:
    """Endless episodes `StoredUnroll [n, ...]`, drawn uniformly, of n unrolls each."""
    return _one_by_one(server_address, replay_config.EPISODES, in_flight=2)


def _one_by_one(server_address: str, table: str, in_flight: int) -> tf.data.Dataset:
    samples = reverb.TrajectoryDataset.from_table_signature(
        server_address,
        table,
        max_in_flight_samples_per_worker=in_flight,
        num_workers_per_iterator=1,
        get_signature_timeout_secs=_TIMEOUT_SECONDS,
    )
    return _mapped(samples, lambda sample: sample.data)


def unrolls(server_address: str, table: str, entries: int, in_flight: int) -> tf.data.Dataset:
    """Endless batches of a table's items, e.g. `StoredUnroll [entries, ...]`.

    Args:
      server_address: "host:port" of the Reverb server.
      table: its name.
      entries: unrolls in a batch.
      in_flight: unrolls that are fetched ahead at most.
    """
    samples = _samples(server_address, table, entries, in_flight)
    return _mapped(samples, lambda sample: sample.data)


def _samples(server_address: str, table: str, entries: int, in_flight: int) -> tf.data.Dataset:
    samples = reverb.TrajectoryDataset.from_table_signature(
        server_address,
        table,
        max_in_flight_samples_per_worker=in_flight,
        num_workers_per_iterator=1,
        get_signature_timeout_secs=_TIMEOUT_SECONDS,
    )
    return samples.batch(entries, drop_remainder=True)


def _with_configured_state(
    batch: stored_unroll.StoredUnroll, config: replay_config.ReplayConfig
) -> stored_unroll.StoredUnroll:
    if config.core_state != "zero":
        return batch
    zeros = tf.nest.map_structure(tf.zeros_like, batch.core_state)
    return batch._replace(core_state=zeros)


def _mapped(dataset: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
    # Not rewritten by AutoGraph, which leaves a file in the temporary folder for each function, as
    # our processes end by os._exit; no branch here depends on a tensor's value.
    return dataset.map(tf.autograph.experimental.do_not_convert(function))
