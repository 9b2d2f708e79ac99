"""Evaluates an exported policy in the environment of its training."""

import contextlib
import itertools
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from laser_tf import errors, types
from laser_tf.environments import factory
from laser_tf.evaluation import episode_runner, episode_video, run_evaluation
from laser_tf.export import exported
from laser_tf.monitoring import progress
from laser_tf.training import run_config

_SEEDS = 2**31  # Seeds of `sample` are below.


def evaluate(
    folder: pathlib.Path,
    *,
    episodes: int,
    seed: int,
    videos: pathlib.Path | None = None,
    greedy: bool = False,
    environment_changes: Mapping[str, Any] | None = None,
    trust_config: bool = False,
) -> dict[str, Any]:
    """Evaluates a SavedModel of `launch.export`; writes nothing into its directory.

    For the arguments and further errors see `run_evaluation.evaluate`. `videos` is a directory for
    a video of the median episode of each task. Returns the same summary without measurements of the
    training. Raises UserError if files are missing or damaged, or the policy does not fit the
    environment.
    """
    about = exported.read_description(folder)
    run_config.check_nesting(about["config"])
    # The other sections may be those of another version, since their agent is not created.
    values = {"environment": about["config"].get("environment", {})}
    trained_on, config, changes = run_evaluation.change_environment(
        folder / exported.DESCRIPTION, values, environment_changes or {}, trust_config
    )
    functions = exported.load_functions(folder)
    start, num_tasks = time.monotonic(), len(config.tasks)
    num_envs = episode_runner.environments_per_task(episodes, num_tasks)
    environment = factory.make_environment(config, seed=seed, num_envs=num_envs)
    title = f"evaluating {config.task}"
    with (
        contextlib.closing(environment),
        progress.EvaluationDisplay(episodes * num_tasks, title) as display,
    ):
        if changes:
            run_evaluation.check_spec(environment.spec(), trained_on)
        policy = _Policy(functions, environment.num_envs, None if greedy else seed)
        finished, actions = episode_runner.run_episodes(
            environment, policy, episodes, config.max_steps_per_episode, display.update
        )
        faults = dict(environment.fault_counts())
    selection = "greedy" if greedy else about["action_selection"]
    summary = {
        "env_frames": about["trained_env_frames"],
        "learner_updates": about["learner_updates"],
        "seconds": round(time.monotonic() - start, 2),
        **episode_runner.summarise_returns(config, finished),
        "faults": faults,
        "protocol": episode_runner.describe_protocol(config, episodes, seed, selection, changes),
    }
    if videos:
        stem = _unused_stem(videos, folder.resolve().name)
        written = episode_video.write_medians(videos, stem, config, seed, finished, actions)
        summary["videos"] = [str(video.path) for video in written]
    return summary


class _Policy:
    """Acts on time steps of N environments with a SavedModel; takes greedy actions without seed."""

    def __init__(self, functions: Any, num_envs: int, seed: int | None):
        self._functions = functions
        self._random = None if seed is None else np.random.default_rng(seed)
        self._state = functions.initial_state(num_envs)

    def __call__(self, env_output: types.EnvOutput) -> np.ndarray:
        """Returns actions [N, ...]."""
        step = (
            env_output.observation,
            env_output.reward,
            env_output.discount,
            env_output.is_first,
            self._state,
        )
        try:
            if self._random is None:
                action, self._state = self._functions.greedy(*step)
            else:
                seed = self._random.integers(_SEEDS, size=2).astype(np.int32)
                action, self._state = self._functions.sample(*step, seed)
        except (TypeError, ValueError) as error:  # No signature has these shapes and dtypes.
            raise errors.UserError(
                f"the SavedModel must fit the environment in {exported.DESCRIPTION}: "
                f"{errors.first_line(error)}. Export the policy again."
            ) from error
        return action.numpy()


def _unused_stem(folder: pathlib.Path, name: str) -> str:
    """Returns `name` and the first number with which no file of a directory begins."""
    existing = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    stems = (f"{name}_{number:03d}" for number in itertools.count(1))
    return next(stem for stem in stems if not any(file.startswith(stem) for file in existing))
