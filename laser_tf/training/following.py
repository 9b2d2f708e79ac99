"""A learner that takes part in the updates of the chief, which alone saves and tells."""

from collections.abc import Callable

from laser_tf.replay import batch_sources, client
from laser_tf.training import learner, run_config


def follow(
    config: run_config.RunConfig,
    trained: learner.Learner,
    replay: client.ReplayClient,
    batches: batch_sources.Source,
    should_stop: Callable[[], bool],
) -> bool:
    """Takes part in each update until the budget is spent or any learner has to stop.

    Args:
      config: of the run.
      trained: as the chief's, see `learner.Learner.take_from_chief`.
      replay: where the batches come from.
      batches: This learner's share of each batch.
      should_stop: whether it has to stop.

    Returns:
      Whether the budget is spent.

    Raises:
      NonFiniteLossError: see `learner.Learner.update`.
      LearnersLostError: if another learner has gone.
    """
    agent_steps = int(trained.counters.agent_steps.numpy())
    while agent_steps < config.total_agent_steps:
        batch = batches.get(should_stop)
        if not trained.all_agree(batch is not None):
            return False
        metrics, priorities = trained.update(batch)
        agent_steps += int(metrics[learner.NEW_STEPS])
        if config.replay.uses_priorities:
            replay.take_priorities(batch, priorities)
    return True
