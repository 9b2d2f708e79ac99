"""Evaluations of a run directory: by command, at the end of training, and of random actions."""

import contextlib
import dataclasses
import json
import logging
import pathlib
from collections.abc import Mapping
from typing import Any, TextIO

from laser_tf import errors, observations, types, user_code
from laser_tf.environments import base, environment_config, factory
from laser_tf.evaluation import episode_runner, episode_video, evaluation_files, evaluator
from laser_tf.monitoring import progress, tensorboard
from laser_tf.training import learner_checkpoints, run_config
from laser_tf.workdir import identity, run_directory


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
    stream: TextIO | None = None,
    best: bool = False,
) -> dict[str, Any]:
    """Evaluates the newest weights of a run and writes the result, see `evaluation_files`.

    For the arguments see `api.runs.evaluate`. The policy sees `history_length` agent steps of an
    episode, including the current one; 0 for all. The progress is shown on `stream`; None for
    standard error. Returns the content of the result's file.

    Raises:
      WorkdirError: If the directory holds no run or no readable checkpoint, or if the result cannot
        be written; then the message contains the result.
      UntrustedError, ConfigError: See `change_environment` and `RestrictedPolicy`.
      EnvironmentFailedError: If the environments fail, or an episode does not end.
    """
    values = run_directory.read_config(workdir)
    trained_on, environment, changes = change_environment(
        workdir / run_directory.CONFIG_FILE, values, environment_changes or {}, trust_config
    )
    config = run_config.parse(values)
    newest = evaluation_files.result_file(workdir, history_length)
    evaluation_files.check_writable(newest)
    evaluating = evaluator.Evaluator(
        dataclasses.replace(config, environment=environment), episodes, seeds=(seed, seed),
        traceback_directory=workdir, greedy=greedy, history_length=history_length,
    )  # fmt: skip
    with contextlib.closing(evaluating):
        if changes:
            check_spec(evaluating.environment.spec(), trained_on)
        summary = _evaluate_weights(evaluating, workdir, config, best, stream)
    selection = "greedy" if greedy else config.agent.acting_in_evaluation
    summary["protocol"] = {
        **episode_runner.describe_protocol(environment, episodes, seed, selection, changes),
        **({"weights": "best"} if best else {}),
    }
    try:
        result = evaluation_files.add(workdir, summary, history_length)
        writer = tensorboard.MetricsWriter(workdir / "tensorboard")
        if not (greedy or best or changes or history_length):
            writer.write_final_return(summary["env_frames"], summary["mean_return"])
        if video:
            episode_actions = evaluating.finished_episodes, evaluating.actions
            written = episode_video.write_medians(
                workdir / "videos", result.stem, environment, seed, *episode_actions
            )
            summary["videos"] = [str(video.path) for video in written]
            for shown in written:
                tag = f"{newest.stem}{shown.suffix}/median_episode"
                writer.write_video(summary["env_frames"], tag, shown.gif)
            evaluation_files.write(summary, result, newest)
    except OSError as error:
        raise run_directory.WorkdirError(
            f"cannot write {newest}: {error.strerror}; the result was {json.dumps(summary)}"
        ) from None
    return summary


def evaluate_finished(
    workdir: pathlib.Path, config: run_config.RunConfig, stream: TextIO | None = None
) -> dict[str, Any] | None:
    """Evaluates a finished run as `run.evaluation_episodes` requests, unless that is done.

    Returns the content of the file of the new or the earlier evaluation; None if no episodes are
    requested.
    """
    episodes = config.run.evaluation_episodes
    if not episodes:
        return None
    # An earlier evaluation counts only if its weights have the whole training.
    if earlier := evaluation_files.standard_evaluation(
        workdir, config.run.env_frames, episodes=episodes
    ):
        return earlier
    # The user who trains has named the environment's code.
    summary = evaluate(
        workdir,
        episodes=episodes,
        seed=config.run.seed,
        video=True,
        trust_config=True,
        stream=stream,
    )
    logging.info(
        "Reached a mean return of %.2f in %d evaluation episodes",
        summary["mean_return"],
        summary["episodes"],
    )
    return summary


def evaluate_random_actions(
    config: environment_config.EnvironmentConfig, episodes: int, seed: int
) -> dict[str, dict[str, float | None]]:
    """Evaluates uniformly random actions, the zero of normalised scores.

    Returns task -> mean return, its standard error (None for one episode), and number of episodes.
    """
    title = f"random actions in {config.task}"
    with (
        contextlib.closing(factory.make_environment(config, seed=seed)) as environment,
        progress.EvaluationDisplay(episodes * len(config.tasks), title) as display,
    ):
        random = base.action_generator(seed)
        finished, _ = episode_runner.run_episodes(
            environment,
            lambda _: environment.random_actions(random),
            episodes,
            config.max_steps_per_episode,
            display.update,
        )
    tasks = episode_runner.summarise_returns(config, finished)["tasks"]
    return {
        task: {
            "mean_return": values["mean_return"],
            # The standard deviation divides by the number of episodes, not by one less.
            "standard_error": values["standard_deviation"] / (episodes - 1) ** 0.5
            if episodes > 1
            else None,
            "episodes": episodes,
        }
        for task, values in tasks.items()
    }


def change_environment(
    source: pathlib.Path, values: Mapping[str, Any], given: Mapping[str, Any], trust_config: bool
) -> tuple[
    environment_config.EnvironmentConfig, environment_config.EnvironmentConfig, dict[str, Any]
]:
    """Returns the environments of a training, those of an evaluation, and the values that differ.

    Values of `identity.CHANGEABLE_KEYS`, which episodes do not depend on, count as equal.

    Args:
      source: File with the configuration.
      values: Configuration of the training, section -> key -> value.
      given: Other values of the section `environment`, e.g. {"sticky_actions": 0.25}.
      trust_config: Whether the configuration may name modules to import.

    Raises:
      UntrustedError: If it names modules that are not in `given`.
      ConfigError: For an unknown key, a wrong value, or a key that must not change.
    """
    if not trust_config:
        code = run_config.user_code_of(values)
        user_code.check_trusted(source, code, given.values())
    section_class = run_config.section_classes(values)["environment"]
    trained_on = run_config.parse_section("environment", section_class, values)
    for key in ("suite", "num_envs"):
        if key in given:
            raise errors.ConfigError(
                f"environment.{key} must be that of the run, got {given[key]!r}. Leave it out."
            )
    section = {"environment": {**values.get("environment", {}), **given}}
    config = run_config.parse_section("environment", section_class, section)
    if not trust_config:
        named = config.user_code() if "task" in given else ()
        user_code.check_trusted(source, trained_on.user_code(), named)
    # Compared as they are parsed, since a task can have several names.
    differing = {
        key: getattr(config, key)
        for key in given
        if getattr(config, key) != getattr(trained_on, key)
        and f"environment.{key}" not in identity.CHANGEABLE_KEYS
    }
    return trained_on, config, differing


def check_spec(
    spec: types.EnvironmentSpec, trained_on: environment_config.EnvironmentConfig
) -> None:
    """Raises ConfigError unless changed environments have the spec of the run's environments."""
    needed = factory.environment_spec(trained_on)
    if spec != needed:
        raise errors.ConfigError(
            f"--environment must keep the run's {observations.describe(needed)}, got "
            f"{observations.describe(spec)}. The agent fits no other."
        )


def _evaluate_weights(
    evaluating: evaluator.Evaluator,
    workdir: pathlib.Path,
    config: run_config.RunConfig,
    best: bool,
    stream: TextIO | None,
) -> dict[str, Any]:
    """Evaluates the newest or the best weights; returns the summary with counters and faults."""
    environment = evaluating.environment
    learner = learner_checkpoints.restore_learner(workdir, config, environment.spec(), best=best)
    weights = [variable.numpy() for variable in learner.agent.acting_variables]
    agent_steps = int(learner.counters.agent_steps)
    updates = int(learner.counters.learner_updates)
    wall_seconds = float(learner.counters.wall_seconds)
    del learner  # Its optimiser's variables are no longer needed.
    tasks = environment.tasks
    title = f"evaluating {tasks[0] if len(tasks) == 1 else f'{len(tasks)} tasks'}"
    with progress.EvaluationDisplay(evaluating.num_episodes, title, stream) as display:
        summary = evaluating.evaluate(
            weights, agent_steps * config.environment.action_repeat, updates, display.update
        )
    summary |= {
        "agent_steps": agent_steps,
        "wall_seconds": round(wall_seconds, 1),
        "agent_steps_per_second": round(agent_steps / wall_seconds, 1) if wall_seconds else 0.0,
        "faults": dict(environment.fault_counts()),
    }
    if summary["faults"]:
        logging.warning(
            "%d faults of the environment ended episodes early; their returns count as they are",
            sum(summary["faults"].values()),
        )
    return summary
