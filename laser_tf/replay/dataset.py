"""The learner's stream of batches: online and replayed unrolls side by side."""

import reverb
import tensorflow as tf

from laser_tf.replay import tables


def make_dataset(server_address: str, config: tables.Config) -> tf.data.Dataset:
    """Endless batches `(StoredUnroll [B, ...], is_online bool [B])`, online rows first.

    Each batch holds exactly `online_rows` unrolls from the queue, each seen once, and `replay_rows`
    drawn uniformly from replay (LASER, section 3). Reverb's selectors take no seed, so which unrolls
    are drawn is not reproducible.

    Args:
      server_address: "host:port" of the Reverb server.
      config: the tables' configuration.
    """
    # Few samples in flight: what waits in a buffer grows stale, and is lost when the run stops.
    online = _unrolls(server_address, tables.ONLINE, min(4, config.online_rows))
    online = online.batch(config.online_rows, drop_remainder=True)
    is_online = tf.range(config.batch_size) < config.online_rows
    if not config.replay_rows:
        return online.map(lambda unrolls: (unrolls, is_online))
    replay = _unrolls(server_address, tables.REPLAY, 2 * config.replay_rows)
    replay = replay.batch(config.replay_rows, drop_remainder=True)
    mixed = tf.data.Dataset.zip((online, replay))
    return mixed.map(lambda *parts: (tf.nest.map_structure(_concatenate, *parts), is_online))


def _unrolls(server_address: str, table: str, in_flight: int) -> tf.data.Dataset:
    samples = reverb.TrajectoryDataset.from_table_signature(
        server_address,
        table,
        max_in_flight_samples_per_worker=in_flight,
        num_workers_per_iterator=1,
    )
    return samples.map(lambda sample: sample.data)


def _concatenate(online: tf.Tensor, replay: tf.Tensor) -> tf.Tensor:
    return tf.concat([online, replay], axis=0)
