"""The stream of batches that a configuration asks for."""

from laser_tf.agents import base as agents_base
from laser_tf.replay import connection, replay_config, stored_unroll
from laser_tf.training import assembly, batches

LearnersStream = batches.MixedBatchStream | batches.EpisodeBatchStream | batches.ReplayBatchStream


def make_stream(
    config: replay_config.ReplayConfig,
    replay: connection.Connection,
    signature: stored_unroll.StoredUnroll,
    agent: agents_base.Agent,
) -> LearnersStream:
    """Starts to fetch a learner's batches.

    Args:
      config: of the tables.
      replay: where the experience lies.
      signature: of an unroll.
      agent: the learner's, with whose weights core states are recomputed.
    """
    if config.steps_per_update:
        return batches.ReplayBatchStream(replay, config, replay.size)
    if config.replay_table != replay_config.EPISODES:
        return batches.MixedBatchStream(replay, config)
    next_state = assembly.state_recomputation(agent, config)
    return batches.EpisodeBatchStream(replay, config, signature, next_state)
