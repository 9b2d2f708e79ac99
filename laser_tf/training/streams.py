"""The stream of batches that a configuration asks for, from one replay server or several."""

import dataclasses
from collections.abc import Sequence

from laser_tf import types
from laser_tf.agents import base as agents_base
from laser_tf.replay import (
    client,
    contextual_replay,
    dataset,
    replay_config,
    stored_unroll,
    unroll_check,
)
from laser_tf.training import (
    assembly,
    batches,
    checked_batches,
    joint_batches,
    learner,
    ratio_batches,
    run_config,
    stored_batches,
)

LearnersStream = (
    batches.MixedBatchStream
    | batches.EpisodeBatchStream
    | batches.ReplayBatchStream
    | ratio_batches.RatioBatchStream
    | joint_batches.JointBatchStream
    | checked_batches.CheckedBatches
)


def stream_of_run(
    config: run_config.RunConfig,
    replay: client.ReplayClient,
    signature: stored_unroll.StoredUnroll,
    trained: learner.Learner,
    spec: types.EnvironmentSpec,
) -> LearnersStream:
    """Starts to fetch the batches of one of a run's learners, which go on from the same weights.

    Args:
      config: of the run.
      replay: where from.
      signature: of an unroll.
      trained: the learner.
      spec: Spec of the environment, which the values of unrolls must fit.
    """
    # Equal for all learners; a resumed run goes on with fresh randomness.
    seed = config.run.seed, int(trained.counters.agent_steps.numpy())
    invalid = checked_batches.InvalidUnrolls(unroll_check.UnrollCheck(spec))
    stream = make_stream(config.share_of_replay, replay, signature, trained.agent, seed, invalid)
    return checked_batches.CheckedBatches(stream, invalid)


def make_stream(
    config: replay_config.ReplayConfig,
    replay: client.ReplayClient,
    signature: stored_unroll.StoredUnroll,
    agent: agents_base.Agent,
    seed: Sequence[int],
    invalid: checked_batches.InvalidUnrolls | None = None,
) -> LearnersStream:
    """Starts to fetch a learner's batches.

    Args:
      config: of what one learner draws.
      replay: where from.
      signature: of an unroll.
      agent: the learner's, with whose weights core states are recomputed.
      seed: of what is drawn here, see `ratio_batches.RatioBatchStream`; what Reverb draws has none.
      invalid: Drops episodes with invalid unrolls before their core states are recomputed.
    """
    sources = _sources(config, replay)
    if isinstance(replay, contextual_replay.ContextualReplay):
        (server,) = replay.servers
        return stored_batches.StoredBatchStream(sources.counts(), server, replay.store, config)
    if config.steps_per_update:
        return batches.ReplayBatchStream(sources.counts(), sources.replayed(), config, replay.size)
    if config.replay_ratio:
        online = _sources(dataclasses.replace(config, replay_ratio=0.0), replay).mixed()
        return ratio_batches.RatioBatchStream(online, sources.replayed(), config.replay_ratio, seed)
    if config.replay_table != replay_config.EPISODES:
        return sources.mixed()
    next_state = assembly.state_recomputation(agent, config)
    episodes = sources.episodes()
    if invalid:
        episodes = checked_batches.CheckedEpisodes(episodes, invalid)
    return batches.EpisodeBatchStream(sources.online(), episodes, config, signature, next_state)


def _sources(
    config: replay_config.ReplayConfig, replay: client.ReplayClient
) -> "_OneServer | _SeveralServers":
    several = len(replay.servers) > 1
    return _SeveralServers(config, replay) if several else _OneServer(config, replay)


class _OneServer:
    """Where streams of one server come from; TensorFlow mixes them."""

    def __init__(self, config: replay_config.ReplayConfig, replay: client.ReplayClient):
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

    def __init__(self, config: replay_config.ReplayConfig, replay: client.ReplayClient):
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
