"""Evaluation by the papers' protocol: no-op starts, raw scores, 30 minutes of play at most."""

import dataclasses
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import imageio.v2 as imageio
import numpy as np

from laser_tf.environments import factory
from laser_tf.runtime import (
    actor,
    assembly,
    checkpointing,
    episode_player,
    evaluation_files,
    hardware,
    learner,
    memory_restriction,
    run_config,
    variables,
)
from laser_tf.scores import aggregates, reference

MAX_ENVIRONMENTS = 32
_FRAMES_PER_SECOND = {"atari": 60, "vizdoom": 35, "dmlab": 60}  # of play; others have no clock


def evaluate(
    workdir: pathlib.Path,
    *,
    episodes: int,
    seed: int,
    video: bool,
    history_length: int = 0,
) -> dict[str, Any]:
    """Plays episodes with the newest weights of a run and writes `evaluation_files.result_file`.

    Args:
      workdir: the run's folder.
      episodes: how many of each task, at least 1. Each environment plays a fixed share of them:
        taking whichever episodes end first would favour short ones.
      seed: of environments and actions.
      video: whether to film the median episode of each task, in `videos/`.
      history_length: agent steps that the policy sees of an episode, the current one included; 0:
        all.

    Returns:
      What that file holds.

    Raises:
      WorkdirError: if the folder holds no run or no readable checkpoint, or the result cannot be
        written, which the message holds then.
      ValueError: if the history of an agent without memory is to be restricted.
    """
    config = run_config.parse(checkpointing.read_config(workdir))
    num_envs = min(episodes, max(1, MAX_ENVIRONMENTS // len(config.environment.tasks)))
    environment = factory.make_environment(config.environment, seed=seed, num_envs=num_envs)
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    trained = assembly.build_learner(config, environment, dtype, jit=False)
    if checkpointing.LearnerCheckpoints(workdir / "checkpoints/learner", trained).restore() is None:
        raise checkpointing.WorkdirError(f"{workdir} holds no checkpoint yet: train first")
    agent = assembly.build_agent(config, environment, dtype, seed, evaluating=True)
    variables.WeightCopier(trained.agent, agent, trained.counters.learner_updates).refresh()

    if history_length:
        policy = memory_restriction.RestrictedPolicy(
            agent, environment, config.replay.frame_stack, history_length
        )
    else:
        policy = actor.ActingPolicy(agent, environment, config.replay.frame_stack)
    player = episode_player.EpisodePlayer(environment, lambda row: policy(row).action)
    games = player.play(episodes)
    environment.close()
    summary = _summarise(config, trained.counters, games)
    if history_length:
        summary["history_length"] = history_length
        summary.update(policy.agreement(games)._asdict())
    result = evaluation_files.result_file(workdir, history_length)
    try:
        if video:
            summary["videos"] = [
                str(_film(workdir, config, seed, _median(of_task), player.actions, history_length))
                for of_task in episode_player.by_task(games)
            ]
        result.write_text(json.dumps(summary, indent=2) + "\n")
    except OSError as error:  # the episodes are not to be played in vain
        raise checkpointing.WorkdirError(
            f"cannot write {result}: {error.strerror}; the result was {json.dumps(summary)}"
        ) from None
    return summary


def _median(games: list[episode_player.Game]) -> episode_player.Game:
    return sorted(games, key=lambda game: game.episode_return)[len(games) // 2]


def _summarise(
    config: run_config.RunConfig, counters: learner.Counters, games: list[episode_player.Game]
) -> dict[str, Any]:
    returns = [
        [game.episode_return for game in of_task] for of_task in episode_player.by_task(games)
    ]
    agent_steps, wall_seconds = int(counters.agent_steps), float(counters.wall_seconds)
    suite, tasks = config.environment.suite, config.environment.tasks
    means = {task: float(np.mean(of_task)) for task, of_task in zip(tasks, returns, strict=True)}
    scores = reference.normalised_scores(suite, means)
    return {
        "task": config.environment.task,
        "episodes": len(games),
        "mean_return": float(np.mean(list(means.values()))),
        "median_return": float(np.median(np.concatenate(returns))),
        "min_return": float(min(map(min, returns))),
        "max_return": float(max(map(max, returns))),
        "human_normalised_score": None,
        "env_frames": agent_steps * config.environment.action_repeat,
        "agent_steps": agent_steps,
        "learner_updates": int(counters.learner_updates),
        "wall_seconds": round(wall_seconds, 1),
        "agent_steps_per_second": round(agent_steps / wall_seconds, 1) if wall_seconds else 0.0,
        **(
            _summarise_scores(f"{reference.kind(suite)}_normalised_score", scores) if scores else {}
        ),
        "tasks": {
            task: {"mean_return": means[task], "normalised_score": scores and scores[task]}
            for task in means
        },
    }


def _summarise_scores(name: str, scores: dict[str, float]) -> dict[str, float]:
    return {
        name: aggregates.median_normalised(scores),
        f"mean_capped_{name}": aggregates.mean_capped_normalised(scores),
    }


def _film(
    workdir: pathlib.Path,
    config: run_config.RunConfig,
    seed: int,
    game: episode_player.Game,
    actions: list[np.ndarray],
    history_length: int,
) -> pathlib.Path:
    """Plays a game again from its environment's seed and its actions, this time with pictures."""
    tasks = config.environment.tasks
    suffix = f"_{tasks[game.task]}" if len(tasks) > 1 else ""
    suffix += evaluation_files.history_suffix(history_length)
    path = workdir / "videos" / f"median_episode{suffix}.mp4"
    path.parent.mkdir(exist_ok=True)
    frames_per_second = (
        _FRAMES_PER_SECOND.get(config.environment.suite, 10) / config.environment.action_repeat
    )
    with imageio.get_writer(path, fps=frames_per_second, macro_block_size=2) as film:
        for picture in _pictures(config, seed, game, actions):
            film.append_data(picture)
    return path


def _pictures(
    config: run_config.RunConfig, seed: int, game: episode_player.Game, actions: list[np.ndarray]
) -> Iterator[np.ndarray]:
    alone = dataclasses.replace(
        config.environment, task=config.environment.tasks[game.task], reward_scales=()
    )
    environment = factory.make_environment(
        alone, seed=seed + game.environment, num_envs=1, rendering=True
    )
    environment.reset()
    for step in range(game.first_step + game.length):
        if step >= game.first_step:
            yield environment.render(0)
        environment.step(actions[step][game.environment : game.environment + 1])
    yield environment.render(0)
    environment.close()
