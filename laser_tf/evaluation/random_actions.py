"""Evaluation of uniformly random actions: the zero of normalised scores."""

import numpy as np

from laser_tf.environments import environment_config, factory, random_streams
from laser_tf.evaluation import episode_player
from laser_tf.monitoring import progress


def evaluate(
    config: environment_config.EnvironmentConfig, episodes: int, seed: int
) -> dict[str, dict[str, float | None]]:
    """Returns task -> mean return, its standard error (None for one episode), and episodes.

    Args:
      config: Environment.
      episodes: Number of episodes of each task.
      seed: Seed of environments and actions.
    """
    environment = factory.make_environment(config, seed=seed)
    random = random_streams.action_generator(seed)
    player = episode_player.EpisodePlayer(
        environment, lambda _: environment.random_actions(random), config.max_steps_per_episode
    )
    title = f"random actions in {config.task}"
    with progress.EvaluationDisplay(episodes * len(config.tasks), title) as display:
        tasks = episode_player.by_task(player.play(episodes, display.update))
    environment.close()
    return {
        task: _summarise([episode.episode_return for episode in of_task])
        for task, of_task in zip(config.tasks, tasks, strict=True)
    }


def _summarise(returns: list[float]) -> dict[str, float | None]:
    count = len(returns)
    return {
        "mean_return": float(np.mean(returns)),
        "standard_error": float(np.std(returns, ddof=1) / count**0.5) if count > 1 else None,
        "episodes": count,
    }
