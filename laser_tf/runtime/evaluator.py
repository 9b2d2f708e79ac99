"""Evaluation by the papers' protocol: no-op starts, raw scores, 30 minutes of play at most."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import imageio.v2 as imageio
import numpy as np

from laser_tf.environments import base, episode_statistics, factory
from laser_tf.runtime import (
    actor,
    checkpointing,
    hardware,
    learner,
    run_config,
    training,
    variables,
)
from laser_tf.scores import atari57

MAX_ENVIRONMENTS = 32


class Game(NamedTuple):
    """One evaluation episode and where it lies in its environment's stream of steps."""

    environment: int  # its index; its seed is the evaluation's plus this
    first_step: int  # agent steps of that environment before the episode
    episode_return: float  # raw
    length: int  # agent steps


def evaluate(
    workdir: pathlib.Path,
    *,
    episodes: int,
    seed: int,
    video: bool,
) -> dict[str, Any]:
    """Plays episodes with the newest weights of a run and writes `evaluation.json`.

    Args:
      workdir: the run's folder.
      episodes: how many, at least 1. Each environment plays a fixed share of them: taking whichever
        episodes end first would favour short ones.
      seed: of environments and actions.
      video: whether to film the median episode as `videos/median_episode.mp4`.

    Returns:
      What `evaluation.json` holds.

    Raises:
      WorkdirError: if the folder holds no run or no readable checkpoint.
    """
    config = run_config.parse(checkpointing.read_config(workdir))
    num_envs = min(episodes, MAX_ENVIRONMENTS)
    environment = factory.make_environment(config.environment, seed=seed, num_envs=num_envs)
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    trained = training.build_learner(config, environment, dtype, jit=False)
    if checkpointing.LearnerCheckpoints(workdir / "checkpoints/learner", trained).restore() is None:
        raise checkpointing.WorkdirError(f"{workdir} holds no checkpoint yet: train first")
    agent = training.build_agent(config, environment, dtype, seed)
    variables.WeightCopier(trained.agent, agent, trained.counters.learner_updates).refresh()

    policy = actor.ActingPolicy(agent, environment, config.replay.frame_stack)
    player = _Player(environment, policy)
    games = player.play(episodes)
    environment.close()
    summary = _summarise(config, trained.counters, games)
    if video:
        summary["video"] = str(_film(workdir, config, seed, _median(games), player.actions))
    (workdir / "evaluation.json").write_text(json.dumps(summary, indent=2) + "\n")
    return summary


class _Player:
    """Plays a batch of environments and remembers every action, to film an episode later."""

    def __init__(self, environment: base.BatchedEnvironment, policy: actor.ActingPolicy):
        """Plays with the policy of these environments."""
        self._environment = environment
        self._policy = policy
        self.actions: list[np.ndarray] = []  # int32 [N] a step

    def play(self, episodes: int) -> list[Game]:
        num_envs = self._environment.num_envs
        quotas = [len(range(index, episodes, num_envs)) for index in range(num_envs)]
        tracker = episode_statistics.EpisodeTracker(num_envs)
        env_output = self._environment.reset()
        games = []
        while len(games) < episodes:
            for episode in tracker.update(env_output):
                if quotas[episode.environment]:
                    quotas[episode.environment] -= 1
                    first_step = len(self.actions) - 1 - episode.length
                    games.append(Game(episode.environment, first_step, *episode[1:]))
            action = self._policy(env_output).action
            self.actions.append(action)
            env_output = self._environment.step(action)
        return games


def _median(games: list[Game]) -> Game:
    return sorted(games, key=lambda game: game.episode_return)[len(games) // 2]


def _summarise(
    config: run_config.RunConfig, counters: learner.Counters, games: list[Game]
) -> dict[str, Any]:
    returns = np.array([game.episode_return for game in games])
    agent_steps, wall_seconds = int(counters.agent_steps), float(counters.wall_seconds)
    is_atari = config.environment.suite == "atari"
    return {
        "task": config.environment.task,
        "episodes": len(games),
        "mean_return": float(returns.mean()),
        "median_return": float(np.median(returns)),
        "min_return": float(returns.min()),
        "max_return": float(returns.max()),
        "human_normalised_score": (
            atari57.human_normalised(config.environment.task, returns.mean()) if is_atari else None
        ),
        "env_frames": agent_steps * config.environment.action_repeat,
        "agent_steps": agent_steps,
        "learner_updates": int(counters.learner_updates),
        "wall_seconds": round(wall_seconds, 1),
        "agent_steps_per_second": round(agent_steps / wall_seconds, 1) if wall_seconds else 0.0,
    }


def _film(
    workdir: pathlib.Path,
    config: run_config.RunConfig,
    seed: int,
    game: Game,
    actions: list[np.ndarray],
) -> pathlib.Path:
    """Plays a game again from its environment's seed and its actions, this time with pictures."""
    path = workdir / "videos" / "median_episode.mp4"
    path.parent.mkdir(exist_ok=True)
    frames_per_second = (
        60 // config.environment.action_repeat if config.environment.suite == "atari" else 10
    )
    with imageio.get_writer(path, fps=frames_per_second, macro_block_size=2) as film:
        for picture in _pictures(config, seed, game, actions):
            film.append_data(picture)
    return path


def _pictures(
    config: run_config.RunConfig, seed: int, game: Game, actions: list[np.ndarray]
) -> Iterator[np.ndarray]:
    environment = factory.make_environment(
        config.environment, seed=seed + game.environment, num_envs=1, rendering=True
    )
    environment.reset()
    for step in range(game.first_step + game.length):
        if step >= game.first_step:
            yield environment.render(0)
        environment.step(actions[step][game.environment : game.environment + 1])
    yield environment.render(0)
    environment.close()
