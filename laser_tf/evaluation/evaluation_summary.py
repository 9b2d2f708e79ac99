"""What an evaluation's file says: returns, scores, and how they were measured."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from laser_tf.environments import environment_config
from laser_tf.evaluation import episode_player
from laser_tf.scores import aggregates, reference
from laser_tf.training import learner, run_config


def summarise(
    config: run_config.RunConfig,
    played: environment_config.EnvironmentConfig,
    counters: learner.Counters,
    games: Sequence[episode_player.Game],
) -> dict[str, Any]:
    """Returns of episodes, as `summarise_returns`, and how much training is behind them.

    Args:
      config: of the run.
      played: the environments of the episodes, which may be others than the run's.
      counters: of the run.
      games: the episodes.
    """
    agent_steps, wall_seconds = int(counters.agent_steps), float(counters.wall_seconds)
    summary = summarise_returns(played, games)
    tasks = summary.pop("tasks")  # the longest part, at the file's end
    return {
        **summary,
        "env_frames": agent_steps * config.environment.action_repeat,
        "agent_steps": agent_steps,
        "learner_updates": int(counters.learner_updates),
        "wall_seconds": round(wall_seconds, 1),
        "agent_steps_per_second": round(agent_steps / wall_seconds, 1) if wall_seconds else 0.0,
        "tasks": tasks,
    }


def summarise_returns(
    played: environment_config.EnvironmentConfig, games: Sequence[episode_player.Game]
) -> dict[str, Any]:
    """Returns of episodes, raw, and their scores.

    A mean over several tasks is the mean of their means; standard deviation (of the episodes, not
    of their mean), median, least and largest are of all episodes together.
    """
    returns = [
        [game.episode_return for game in of_task] for of_task in episode_player.by_task(games)
    ]
    suite, tasks = played.suite, played.tasks
    means = {task: float(np.mean(of_task)) for task, of_task in zip(tasks, returns, strict=True)}
    scores = reference.normalised_scores(suite, means)
    together = np.concatenate(returns)
    return {
        "task": played.task,
        "episodes": len(games),
        "mean_return": float(np.mean(list(means.values()))),
        "standard_deviation": float(np.std(together)),
        "median_return": float(np.median(together)),
        "min_return": float(together.min()),
        "max_return": float(together.max()),
        "human_normalised_score": None,
        **(
            _summarise_scores(f"{reference.kind(suite)}_normalised_score", scores) if scores else {}
        ),
        "tasks": {
            task: {
                "mean_return": means[task],
                "standard_deviation": float(np.std(of_task)),
                "normalised_score": scores and scores[task],
                "returns": of_task,
            }
            for task, of_task in zip(tasks, returns, strict=True)
        },
    }


def _summarise_scores(name: str, scores: dict[str, float]) -> dict[str, float]:
    return {
        name: aggregates.median_normalised(scores),
        f"mean_capped_{name}": aggregates.mean_capped_normalised(scores),
    }


def protocol(
    played: environment_config.EnvironmentConfig,
    *,
    episodes: int,
    num_envs: int,
    seed: int,
    action_selection: str,
) -> dict[str, Any]:
    """How an evaluation is played.

    Args:
      played: the environments.
      episodes: of each task.
      num_envs: environments of each task at once.
      seed: of environments and actions.
      action_selection: how actions are chosen, in words.
    """
    return {
        "suite": played.suite,
        "episodes_per_task": episodes,
        "environments_at_once_per_task": num_envs,
        "seed": seed,
        "action_selection": action_selection,
        "rewards": "raw",
        **played.protocol(),
    }
