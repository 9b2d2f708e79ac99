"""The stream of batches that a configuration asks for, from one replay server or several."""

from laser_tf.agents import base as agents_base
from laser_tf.replay import (
    connection,
    dataset,
    replay_config,
    several_servers,
    stored_unroll,
)
from laser_tf.training import assembly, batches, joint_batches


def make_stream(
    config: replay_config.ReplayConfig,
    replay: connection.Connection,
    signature: stored_unroll.StoredUnroll,
    agent: agents_base.Agent,
) -> batches.BatchStream:
    """Starts to fetch a learner's batches.

    Args:
      config: of the tables.
      replay: where the experience lies.
      signature: of an unroll.
      agent: the learner's, with whose weights core states are recomputed.
    """
    sources: _OneServer | _SeveralServers = _OneServer(config, replay)
    if isinstance(replay, several_servers.ReplayServers) and len(replay.addresses) > 1:
        sources = _SeveralServers(config, replay)
    if config.steps_per_update:
        return batches.ReplayBatchStream(
            sources.new_steps(), sources.replayed(), config, replay.size
        )
    if config.replay_table == replay_config.EPISODES:
        next_state = assembly.state_recomputation(agent, config)
        return batches.EpisodeBatchStream(
            sources.online(), sources.episodes(), config, signature, next_state
        )
    return sources.mixed()


class _OneServer:
    """Where streams of one server come from; TensorFlow mixes them."""

    def __init__(self, config: replay_config.ReplayConfig, replay: connection.Connection):
        self._config = config
        self._address = replay.address
        self._queue = replay.queue

    def new_steps(self) -> batches.Stream:
        steps = dataset.new_steps(self._address, self._queue)
        return batches.BatchStream(batches.fetcher(steps))

    def replayed(self) -> batches.Stream:
        replayed = dataset.replayed_batches(self._address, self._config)
        return batches.BatchStream(batches.fetcher(replayed))

    def online(self) -> batches.Stream:
        online = dataset.online_unrolls(self._address, self._config, self._queue)
        return batches.BatchStream(batches.fetcher(online))

    def episodes(self) -> batches.PolledStream:
        return batches.BatchStream(batches.fetcher(dataset.episodes(self._address)))

    def mixed(self) -> batches.BatchStream:
        mixed = dataset.make_dataset(self._address, self._config, self._queue)
        return batches.BatchStream(batches.fetcher(mixed))


class _SeveralServers:
    """Where streams of several servers come from."""

    def __init__(self, config: replay_config.ReplayConfig, replay: several_servers.ReplayServers):
        self._config = config
        self._replay = replay

    def new_steps(self) -> batches.Stream:
        return joint_batches.JointStream(
            [
                batches.fetcher(dataset.new_steps(address, self._replay.queue))
                for address in self._replay.addresses
            ]
        )

    def replayed(self) -> batches.Stream:
        return joint_batches.ReplayedStream(self._replay, self._config)

    def online(self) -> batches.Stream:
        return joint_batches.OnlineStream(self._replay, self._config)

    def episodes(self) -> batches.PolledStream:
        return joint_batches.SharedStream(
            [batches.fetcher(dataset.episodes(address)) for address in self._replay.addresses],
            self._replay.items,
        )

    def mixed(self) -> batches.BatchStream:
        return joint_batches.JointBatchStream(self._replay, self._config)
