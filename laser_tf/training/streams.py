"""The stream of batches that a configuration asks for, from one replay server or several."""

from laser_tf.agents import base as agents_base
from laser_tf.replay import dataset, learners_replay, replay_config, stored_unroll
from laser_tf.training import assembly, batches, joint_batches

LearnersStream = (
    batches.MixedBatchStream
    | batches.EpisodeBatchStream
    | batches.ReplayBatchStream
    | joint_batches.JointBatchStream
)


def make_stream(
    config: replay_config.ReplayConfig,
    replay: learners_replay.LearnersReplay,
    signature: stored_unroll.StoredUnroll,
    agent: agents_base.Agent,
) -> LearnersStream:
    """Starts to fetch a learner's batches.

    Args:
      config: of what one learner draws.
      replay: where from.
      signature: of an unroll.
      agent: the learner's, with whose weights core states are recomputed.
    """
    several = len(replay.servers) > 1
    sources = _SeveralServers(config, replay) if several else _OneServer(config, replay)
    if config.steps_per_update:
        return batches.ReplayBatchStream(sources.counts(), sources.replayed(), config, replay.size)
    if config.replay_table != replay_config.EPISODES:
        return sources.mixed()
    next_state = assembly.state_recomputation(agent, config)
    return batches.EpisodeBatchStream(
        sources.online(), sources.episodes(), config, signature, next_state
    )


class _OneServer:
    """Where streams of one server come from; TensorFlow mixes them."""

    def __init__(self, config: replay_config.ReplayConfig, replay: learners_replay.LearnersReplay):
        self._config = config
        (self._server,) = replay.servers

    def counts(self) -> batches.Stream:
        queue = self._server.queue
        return batches.SourceStream(self._server, lambda address: dataset.counts(address, queue))

    def replayed(self) -> batches.Stream:
        return batches.SourceStream(
            self._server, lambda address: dataset.replayed_batches(address, self._config)
        )

    def online(self) -> batches.Stream:
        config, queue = self._config, self._server.queue
        return batches.SourceStream(
            self._server, lambda address: dataset.online_unrolls(address, config, queue)
        )

    def episodes(self) -> batches.PolledStream:
        return batches.SourceStream(self._server, dataset.episodes)

    def mixed(self) -> batches.MixedBatchStream:
        return batches.MixedBatchStream(self._server, self._config)


class _SeveralServers:
    """Where streams of several servers come from."""

    def __init__(self, config: replay_config.ReplayConfig, replay: learners_replay.LearnersReplay):
        self._config = config
        self._replay = replay

    def counts(self) -> batches.Stream:
        queue = self._replay.queue
        return joint_batches.JointStream(
            self._replay.servers, lambda address: dataset.counts(address, queue)
        )

    def replayed(self) -> batches.Stream:
        return joint_batches.ReplayedStream(self._replay, self._config)

    def online(self) -> batches.Stream:
        return joint_batches.OnlineStream(self._replay, self._config)

    def episodes(self) -> batches.PolledStream:
        return joint_batches.shared_stream(self._replay, dataset.episodes)

    def mixed(self) -> joint_batches.JointBatchStream:
        return joint_batches.JointBatchStream(self._replay, self._config)
