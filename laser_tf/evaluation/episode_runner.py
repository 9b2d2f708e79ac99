"""Runs a fixed number of episodes and summarises their returns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from laser_tf import types
from laser_tf.environments import base, environment_config, episode_statistics, faults
from laser_tf.scores import aggregates, reference

Episode: TypeAlias = episode_statistics.Episode

_MAX_ENVIRONMENTS = 32  # Of all tasks together; each task has at least one.


def environments_per_task(episodes: int, num_tasks: int) -> int:
    """Returns the number of environments that run `episodes` episodes of each task."""
    return min(episodes, max(1, _MAX_ENVIRONMENTS // num_tasks))


def run_episodes(
    environment: base.BatchedEnvironment,
    policy: Callable[[types.EnvOutput], np.ndarray],
    episodes: int,
    max_steps_per_episode: int = 0,
    on_step: Callable[[Sequence[Episode], int], None] = lambda *_: None,
) -> tuple[list[Episode], list[np.ndarray]]:
    """Resets the environments and runs episodes of each task.

    Each environment runs a fixed share: counting the episodes that end first would favour short
    episodes. Raises EnvironmentFailedError if an episode does not end.

    Args:
      environment: Batch of N environments.
      policy: Maps each time step to actions [N, ...].
      episodes: Number of episodes of each task, at least 1.
      max_steps_per_episode: Agent steps of the longest episode; 0 if unknown.
      on_step: Called at each step with the episodes so far and the agent steps of all environments.

    Returns:
      The episodes in the order of their ends, and the actions of each step, [N, ...].
    """
    num_tasks = len(environment.tasks)
    per_task = environment.num_envs // num_tasks
    quotas = [len(range(index, episodes, per_task)) for index in range(per_task)] * num_tasks
    limit = episode_statistics.length_limit(max_steps_per_episode)
    tracker = episode_statistics.EpisodeTracker(environment)
    env_output = environment.reset()
    finished: list[Episode] = []
    actions: list[np.ndarray] = []
    while len(finished) < episodes * num_tasks:
        for episode in tracker.update(env_output):
            if quotas[episode.environment]:
                quotas[episode.environment] -= 1
                finished.append(episode)
        lengths = tracker.lengths * np.sign(quotas)
        if lengths.max() > limit:
            task = environment.tasks[environment.task_ids[lengths.argmax()]]
            raise faults.EnvironmentFailedError(
                f"an episode of {task} did not end within {limit:,} agent steps. Set "
                "environment.max_frames_per_episode, or have the environment end its episodes"
            )
        on_step(finished, len(actions) * environment.num_envs)
        actions.append(policy(env_output))
        env_output = environment.step(actions[-1])
    return finished, actions


def by_task(episodes: Sequence[Episode]) -> list[list[Episode]]:
    """Returns the episodes of each task, in the order of the tasks."""
    num_tasks = 1 + max(episode.task for episode in episodes)
    return [[e for e in episodes if e.task == task] for task in range(num_tasks)]


def summarise_returns(
    config: environment_config.EnvironmentConfig, episodes: Sequence[Episode]
) -> dict[str, Any]:
    """Returns statistics of raw returns and normalised scores of the episodes of all tasks.

    The mean over several tasks is the mean of their means. Standard deviation (of the episodes, not
    of their mean), median, minimum and maximum are those of all episodes together.
    """
    returns = {
        task: [episode.episode_return for episode in of_task]
        for task, of_task in zip(config.tasks, by_task(episodes), strict=True)
    }
    means = {task: float(np.mean(values)) for task, values in returns.items()}
    scores = reference.normalised_scores(config.suite, means)
    together = np.concatenate(list(returns.values()))
    summary = {
        "task": config.task,
        "episodes": len(episodes),
        "mean_return": float(np.mean(list(means.values()))),
        "standard_deviation": float(np.std(together)),
        "median_return": float(np.median(together)),
        "min_return": float(together.min()),
        "max_return": float(together.max()),
        "human_normalised_score": None,
    }
    if scores:
        name = f"{reference.kind(config.suite)}_normalised_score"
        summary[name] = aggregates.median_normalised(scores)
        summary[f"mean_capped_{name}"] = aggregates.mean_capped_normalised(scores)
    summary["tasks"] = {
        task: {
            "mean_return": means[task],
            "standard_deviation": float(np.std(values)),
            "normalised_score": scores and scores[task],
            "returns": values,
        }
        for task, values in returns.items()
    }
    return summary


def describe_protocol(
    config: environment_config.EnvironmentConfig,
    episodes: int,
    seed: int,
    action_selection: str,
    changes: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the entry `protocol` of a result of so many episodes of each task.

    `changes` are the values of the environments that differ from training.
    """
    return {
        "suite": config.suite,
        "episodes_per_task": episodes,
        "environments_at_once_per_task": environments_per_task(episodes, len(config.tasks)),
        "seed": seed,
        "action_selection": action_selection,
        "rewards": "raw",
        **config.protocol(),
        **({"changed_environment": dict(changes)} if changes else {}),
    }
