"""Evaluation by the papers' protocol: no-op starts, raw scores, 30 minutes of play at most."""

import json
import logging
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from laser_tf import array_function, errors, observations, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import base, environment_config, factory, faults, user_modules
from laser_tf.evaluation import (
    episode_player,
    evaluation_files,
    evaluation_film,
    evaluation_summary,
    memory_restriction,
)
from laser_tf.monitoring import progress, tensorboard
from laser_tf.training import (
    actor,
    run_config,
    trained,
)
from laser_tf.workdir import run_directory

_UNCHANGEABLE = {
    "suite": "an agent plays the suite that it was trained on",
    "num_envs": "how many games are played at once follows from the number of episodes",
}


def evaluate(
    workdir: pathlib.Path,
    *,
    episodes: int,
    seed: int,
    video: bool,
    history_length: int = 0,
    greedy: bool = False,
    environment_changes: Mapping[str, Any] | None = None,
    trust_config: bool = False,
) -> dict[str, Any]:
    """Plays episodes with the newest weights of a run and writes down what they returned.

    The files are those of `evaluation_files`; the films lie in `videos/` under the evaluation's
    name. How far it is shows on standard error.

    Args:
      workdir: the run's folder.
      episodes: how many of each task, at least 1. Each environment plays a fixed share of them:
        taking whichever episodes end first would favour short ones.
      seed: of environments and actions.
      video: whether to film the median episode of each task.
      history_length: agent steps that the policy sees of an episode, the current one included; 0:
        all.
      greedy: whether to take the likeliest action, or that of the largest value, instead of
        drawing one as the agent does.
      environment_changes: values of the configuration's section `environment` other than the run's,
        e.g. {"sticky_actions": 0.25}.
      trust_config: Whether the run's `config.json` may name modules to import.

    Returns:
      What the result's file holds.

    Raises:
      WorkdirError: if the folder holds no run or no readable checkpoint, or the result cannot be
        written, which the message holds then.
      UntrustedError: If `config.json` names modules that are not in `environment_changes`.
      ValueError: if the history of an agent without memory is to be restricted, or the changed
        environments are not ones that the agent can play.
      EnvironmentFailedError: If the environments fail, or an episode does not end.
    """
    values = run_directory.read_config(workdir)
    config = run_config.parse(values)
    given = environment_changes or {}
    played, changes = _changed(config.environment, values["environment"], given)
    if not trust_config:
        named = played.user_code() if "task" in given else ()
        code = config.environment.user_code()
        user_modules.check_trusted(workdir / run_directory.CONFIG_FILE, code, named)
    tasks = played.tasks
    num_envs = episode_player.environments_at_once(episodes, len(tasks))
    environment = factory.make_environment(
        played, seed=seed, num_envs=num_envs, fault_folder=workdir
    )
    if changes:
        _check_playable(environment.spec(), config.environment)
    agent, counters = trained.restore_agent(workdir, config, environment.spec(), seed=seed)
    policy: Any
    if history_length:
        policy = memory_restriction.RestrictedPolicy(
            agent, environment, config.replay.frame_stack, history_length
        )
    else:
        policy = actor.ActingPolicy(agent, environment, config.replay.frame_stack)
    player = episode_player.EpisodePlayer(
        environment, _choice(policy, agent, greedy), played.max_steps_per_episode
    )
    with progress.EvaluationDisplay(episodes * len(tasks), f"evaluating {_named(tasks)}") as shown:
        games = player.play(episodes, shown.update)
    broken = dict(environment.fault_counts())
    environment.close()

    summary = evaluation_summary.summarise(config, played, counters, games)
    summary["faults"] = broken
    if broken:
        logging.warning(
            "%d faults of the environment broke episodes off, whose returns count as they are",
            sum(broken.values()),
        )
    summary["protocol"] = evaluation_summary.protocol(
        played,
        episodes=episodes,
        num_envs=num_envs,
        seed=seed,
        action_selection="greedy" if greedy else config.agent.acting_in_evaluation,
    )
    if changes:
        summary["protocol"]["changed_environment"] = changes
    if history_length:
        summary["history_length"] = history_length
        summary.update(policy.agreement(games)._asdict())
    result = evaluation_files.result_file(workdir, history_length)
    try:
        result = evaluation_files.add(workdir, summary, history_length)  # before a film may fail
        if video:
            newest = evaluation_files.result_file(workdir, history_length)
            names = result.stem, newest.stem
            frames = summary["env_frames"]
            films = (
                _film(workdir, played, seed, _median(of_task), player.actions, names, frames)
                for of_task in episode_player.by_task(games)
            )
            summary["videos"] = [path for path in films if path]
            evaluation_files.rewrite(result, summary, newest)
    except OSError as error:  # the episodes are not to be played in vain
        raise run_directory.WorkdirError(
            f"cannot write {result}: {error.strerror}; the result was {json.dumps(summary)}"
        ) from None
    return summary


def _changed(
    trained_on: environment_config.EnvironmentConfig,
    values: Mapping[str, Any],
    given: Mapping[str, Any],
) -> tuple[environment_config.EnvironmentConfig, dict[str, Any]]:
    """A run's environments with other values, and those that do differ."""
    for key in given.keys() & _UNCHANGEABLE.keys():
        raise errors.ConfigError(f"{key} cannot be changed to {given[key]!r}: {_UNCHANGEABLE[key]}")
    section = {"environment": {**values, **given}}
    changed = run_config.parse_section("environment", type(trained_on), section)
    # As they are parsed: a task has several names.
    differing = {
        key: getattr(changed, key)
        for key in given
        if getattr(changed, key) != getattr(trained_on, key)
    }
    return changed, differing


def _check_playable(
    spec: types.EnvironmentSpec, trained_on: environment_config.EnvironmentConfig
) -> None:
    try:
        needed = factory.environment_spec(trained_on)
    except (faults.EnvironmentFailedError, ImportError, ValueError) as error:
        # It may be what the change is for; weights of another agent are refused as they load.
        logging.info("the run's own environment cannot be made here: %s", errors.one_line(error))
        return
    if spec != needed:
        raise errors.ConfigError(
            f"the changed environment has {observations.describe(spec)}, the run's "
            f"{observations.describe(needed)}: the agent needs the same"
        )


def _choice(
    policy: Callable[[types.EnvOutput], types.AgentOutput], agent: agents_base.Agent, greedy: bool
) -> Callable[[types.EnvOutput], np.ndarray]:
    if greedy:
        best = array_function.ArrayFunction(agent.greedy_action)
        return lambda step: best(policy(step))
    return lambda step: policy(step).action


def _named(tasks: tuple[str, ...]) -> str:
    return tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"


def _median(games: list[episode_player.Game]) -> episode_player.Game:
    return sorted(games, key=lambda game: game.episode_return)[len(games) // 2]


def _film(
    workdir: pathlib.Path,
    played: environment_config.EnvironmentConfig,
    seed: int,
    game: episode_player.Game,
    actions: Sequence[np.ndarray],
    names: tuple[str, str],
    env_frames: int,
) -> str | None:
    """Films an episode for the folder and for TensorBoard, under a name for each, if it can."""
    tasks = played.tasks
    task = tasks[game.task] if len(tasks) > 1 else ""
    path = evaluation_files.film_file(workdir, names[0], task)
    try:
        gif = evaluation_film.film(path, played, seed, game, actions)
    except (
        base.RenderError,
        faults.EnvironmentFailedError,
        ImportError,
        OSError,
        ValueError,
    ) as error:  # the result stands without, whatever it is that drawing needs
        logging.warning("no film: %s", errors.one_line(error))
        return None
    name = f"{names[1]}_{task}" if task else names[1]
    tensorboard.write_film(
        workdir / "tensorboard/evaluation", env_frames, f"{name}/median_episode", gif
    )
    return str(path)
