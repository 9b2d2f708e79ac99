"""The learner's stream of batches: online and replayed unrolls side by side."""

import numpy as np
import reverb
import tensorflow as tf

from laser_tf.replay import stored_unroll, tables

_TIMEOUT_SECONDS = 60  # for a server's first answer


def make_dataset(server_address: str, config: tables.Config, queue: str) -> tf.data.Dataset:
    """Endless `stored_unroll.Batch`es, online rows first.

    Each batch holds exactly `online_rows` unrolls from the queue, each seen once, and
    `replay_rows` drawn from replay (LASER, section 3). Reverb's selectors take no seed, so which
    unrolls are drawn is not reproducible.

    Args:
      server_address: "host:port" of the Reverb server.
      config: the tables' configuration, with `core_state` "stored" or "zero".
      queue: the learner's.
    """
    is_online = np.arange(config.batch_size) < config.online_rows
    online = online_unrolls(server_address, config, queue)
    if not config.learn_online:
        return _replay_alone(server_address, config, online)
    if not config.replay_rows:
        return online.map(lambda unrolls: stored_unroll.unweighted(unrolls, is_online))
    replay = _samples(
        server_address, tables.REPLAY, config.replay_rows, in_flight=2 * config.replay_rows
    )

    def mix(online: stored_unroll.StoredUnroll, replay: reverb.ReplaySample) -> stored_unroll.Batch:
        drawn = _with_configured_state(replay.data, config)
        mixed = stored_unroll.unweighted(
            tf.nest.map_structure(_concatenate, online, drawn), is_online
        )
        if not config.priority_exponent:
            return mixed
        weights = importance_weights(replay.info, config.importance_exponent)
        return mixed._replace(
            key=_concatenate(tf.zeros([config.online_rows], tf.uint64), replay.info.key),
            weight=_concatenate(tf.ones([config.online_rows]), weights),
        )

    return tf.data.Dataset.zip((online, replay)).map(mix)


def _replay_alone(
    server_address: str, config: tables.Config, online: tf.data.Dataset
) -> tf.data.Dataset:
    """Batches from replay only, while as much fresh experience passes by as in a mixed batch."""
    replay = unrolls(server_address, tables.REPLAY, config.batch_size, 2 * config.batch_size)
    is_online = np.zeros(config.batch_size, bool)
    return tf.data.Dataset.zip((online, replay)).map(
        lambda _, drawn: stored_unroll.unweighted(_with_configured_state(drawn, config), is_online)
    )


def importance_weights(info: reverb.replay_sample.SampleInfo, exponent: float) -> tf.Tensor:
    """(1 / (N P(i)))^beta over the batch's largest (Schaul et al. 2015, section 3.4).

    Args:
      info: of samples [rows], with their probabilities P and the table's size N.
      exponent: beta; 1 corrects wholly for drawing some more often than others.

    Returns:
      float32 [rows], at most 1.
    """
    ratios = 1 / (tf.cast(info.table_size, tf.float64) * info.probability)
    weights = tf.cast(ratios, tf.float32) ** exponent
    return weights / tf.reduce_max(weights)


def online_unrolls(server_address: str, config: tables.Config, queue: str) -> tf.data.Dataset:
    """Endless batches `StoredUnroll [online_rows, ...]` of the learner's `queue`."""
    # Few samples in flight: what waits in a buffer grows stale, and is lost when the run stops.
    return unrolls(server_address, queue, config.online_rows, in_flight=4)


def episodes(server_address: str) -> tf.data.Dataset:
    """Endless episodes `StoredUnroll [n, ...]`, drawn uniformly, of n unrolls each."""
    samples = reverb.TrajectoryDataset.from_table_signature(
        server_address,
        tables.EPISODES,
        max_in_flight_samples_per_worker=2,
        num_workers_per_iterator=1,
        get_signature_timeout_secs=_TIMEOUT_SECONDS,
    )
    return samples.map(lambda sample: sample.data)


def unrolls(server_address: str, table: str, rows: int, in_flight: int) -> tf.data.Dataset:
    """Endless batches `StoredUnroll [rows, ...]` of one table.

    Args:
      server_address: "host:port" of the Reverb server.
      table: its name.
      rows: unrolls in a batch.
      in_flight: unrolls that are fetched ahead at most.
    """
    samples = _samples(server_address, table, rows, in_flight)
    return samples.map(lambda sample: sample.data)


def _samples(server_address: str, table: str, rows: int, in_flight: int) -> tf.data.Dataset:
    samples = reverb.TrajectoryDataset.from_table_signature(
        server_address,
        table,
        max_in_flight_samples_per_worker=in_flight,
        num_workers_per_iterator=1,
        get_signature_timeout_secs=_TIMEOUT_SECONDS,
    )
    return samples.batch(rows, drop_remainder=True)


def _with_configured_state(
    batch: stored_unroll.StoredUnroll, config: tables.Config
) -> stored_unroll.StoredUnroll:
    if config.core_state != "zero":
        return batch
    zeros = tf.nest.map_structure(tf.zeros_like, batch.core_state)
    return batch._replace(core_state=zeros)


def _concatenate(online: tf.Tensor, replay: tf.Tensor) -> tf.Tensor:
    return tf.concat([online, replay], axis=0)
