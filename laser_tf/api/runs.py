"""The functions `train` and `evaluate` of the Python API, and their results."""

import dataclasses
import io
import logging
import operator
import os
import pathlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from laser_tf import errors
from laser_tf.api import caller_state, plans
from laser_tf.environments import user_functions
from laser_tf.training import callbacks as callbacks_module
from laser_tf.training import run_config
from laser_tf.workdir import overrides as overrides_module

_is_training = threading.Lock()


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Returns of the episodes of an evaluation.

    Attributes:
      mean_return: Mean raw return; of several tasks, the mean of their means.
      standard_deviation: Standard deviation of the returns of single episodes.
      median_return: Median of the returns.
      min_return: Smallest return.
      max_return: Largest return.
      episodes: Number of episodes of all tasks together.
      env_frames: Env frames that the evaluated weights have learned from.
      summary: Content of `evaluation.json`, with protocol and single returns of each task.
    """

    mean_return: float
    standard_deviation: float
    median_return: float
    min_return: float
    max_return: float
    episodes: int
    env_frames: int
    summary: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Run:
    """Result of `train`.

    Attributes:
      workdir: Run directory.
      env_frames: Env frames learned from so far: agent steps times action repeat.
      finished: Whether the budget `run.env_frames` is spent; False if a callback stopped the run.
      evaluation: Evaluation at the end; None if `run.evaluation_episodes` is 0.
    """

    workdir: pathlib.Path
    env_frames: int
    finished: bool
    evaluation: Evaluation | None


@caller_state.kept()
def train(
    config: run_config.RunConfig,
    workdir: str | os.PathLike[str],
    *,
    extend: bool = False,
    overrides: Mapping[str, Any] | None = None,
    init_from: str | os.PathLike[str] | None = None,
    trust_config: bool = False,
    environment: Callable[..., Any] | None = None,
    callbacks: Sequence[callbacks_module.Callback] = (),
    progress: bool = True,
) -> Run:
    """Trains a run in this process until its budget is spent, then evaluates it.

    The same call resumes an interrupted run. KeyboardInterrupt saves the run and propagates. While
    the run lasts, other hosts can reach its replay server, see docs/security.md.

    Args:
      config: Configuration, see `load_config`.
      workdir: Run directory, which is created.
      extend: Whether to accept a larger `run.env_frames` than the run has, if its learning rate
        follows a schedule.
      overrides: Other values of an existing run from now on, by key "section.key"; see
        docs/runs.md.
      init_from: Run directory whose newest weights are the initial weights of a new run.
      trust_config: Whether the `config.json` of `init_from` may name code to execute.
      environment: Function or lambda that returns an environment of gymnasium, dm_env or
        TF-Agents, for the suites with these names. With a parameter `num_envs` it returns a vector
        environment. It receives the keyword arguments `environment.arguments`, and `seed` if it has
        such a parameter. Pass it again to resume.
      callbacks: Callbacks, which are called in this order; see docs/callbacks.md.
      progress: Whether to show the progress of training and evaluation.

    Raises:
      ConfigError: If the configuration does not fit the environment, `environment` cannot be
        pickled, or another argument has a wrong value. Nothing is written, unless a callback raises
        it.
      WorkdirError: If the run directory cannot be used, or holds a run of another configuration.
      UserError: For any other error that the user can fix, e.g. of the environment. A run that has
        started is saved.
      Exception: The error of a callback. The run is saved.
    """
    if not _is_training.acquire(blocking=False):
        raise errors.UserError(
            "laser_tf.train must run once at a time in a process, got a second call. Start another "
            "process."
        )
    try:
        if not os.fspath(workdir):  # Otherwise the current directory.
            raise errors.ConfigError(f"workdir must name a directory, got {workdir!r}. Name one.")
        folder = pathlib.Path(workdir).expanduser().absolute()
        origin = pathlib.Path(init_from).expanduser().absolute() if init_from else None
        config, overrides = _checked_config(config, environment), overrides or {}
        _check_callbacks(callbacks)
        overrides_module.check(overrides, dataclasses.asdict(config))
        return _train(
            plans.check(
                plans.with_overrides(config, folder, overrides),
                folder,
                extend=extend,
                init_from=origin,
                trust_config=trust_config,
                overridden=tuple(overrides),
            ),
            callbacks,
            None if progress else io.StringIO(),
        )
    finally:
        _is_training.release()


def _checked_config(
    config: run_config.RunConfig, environment: Callable[..., Any] | None
) -> run_config.RunConfig:
    if not isinstance(config, run_config.RunConfig):
        raise errors.ConfigError(
            f"config must be a RunConfig, got a {type(config).__name__}. Use laser_tf.load_config."
        )
    if config.cluster.actors:
        raise errors.ConfigError(
            f"cluster.actors must be 0 in laser_tf.train, got {config.cluster.actors}. Use the "
            "command launch.train for several processes."
        )
    if environment is None:
        return config
    section = user_functions.configure(config.environment, environment)
    return dataclasses.replace(config, environment=section)


def _check_callbacks(callbacks: object) -> None:
    if isinstance(callbacks, Sequence) and all(
        isinstance(callback, callbacks_module.Callback) for callback in callbacks
    ):
        return
    raise errors.ConfigError(
        f"callbacks must be a list of laser_tf.callbacks.Callback objects, got {callbacks!r}. Use "
        "e.g. callbacks=[laser_tf.callbacks.KeepBest()]."
    )


def _train(
    plan: plans.Plan, callbacks: Sequence[callbacks_module.Callback], stream: TextIO | None
) -> Run:
    if not plan.config.replay.address:
        logging.warning(
            "The replay server of this run listens on every interface without authentication; see "
            "docs/security.md"
        )
    with plans.started(plan, callbacks) as run:
        plans.train(run, plan.config, plan.workdir, lambda: False, stream)
        from laser_tf.evaluation import run_evaluation

        summary = run_evaluation.evaluate_finished(plan.workdir, plan.config, stream)
        evaluation = _evaluation(summary) if summary else None
        return Run(plan.workdir, run.env_frames, run.finished, evaluation)


@caller_state.kept()
def evaluate(
    workdir: str | os.PathLike[str],
    *,
    episodes: int = 200,
    greedy: bool = False,
    best: bool = False,
    seed: int = 12345,
    video: bool = False,
    environment_changes: Mapping[str, Any] | None = None,
    trust_config: bool = False,
    progress: bool = True,
) -> Evaluation:
    """Evaluates the newest weights of a run and writes the result to `evaluation.json`.

    Args:
      workdir: Run directory.
      episodes: Number of episodes of each task.
      greedy: Whether to take the action of the largest probability or value instead of sampling.
      best: Whether to evaluate the weights that the callback `KeepBest` has kept.
      seed: Seed of environments and actions.
      video: Whether to write a video of the median episode of each task to `videos/`.
      environment_changes: Values of the section `environment` that differ from those of the run,
        e.g. {"sticky_actions": 0.25}.
      trust_config: Whether the run's `config.json` may name or contain code to execute. Runs on
        custom environments need it.
      progress: Whether to show the progress.

    Raises:
      WorkdirError: If the directory holds no run or no checkpoint, or cannot be written.
      UntrustedError: If the run needs `trust_config`.
      ConfigError: For an argument out of range or an invalid change of the environment.
    """
    episodes, seed = operator.index(episodes), operator.index(seed)  # JSON rejects NumPy's.
    if episodes < 1:
        raise errors.ConfigError(f"episodes must be 1 or more, got {episodes}.")
    from laser_tf.evaluation import run_evaluation

    return _evaluation(
        run_evaluation.evaluate(
            pathlib.Path(workdir).expanduser(),
            episodes=episodes,
            seed=seed,
            video=video,
            greedy=greedy,
            best=best,
            environment_changes=environment_changes,
            trust_config=trust_config,
            stream=None if progress else io.StringIO(),
        )
    )


def _evaluation(summary: Mapping[str, Any]) -> Evaluation:
    names = [field.name for field in dataclasses.fields(Evaluation) if field.name != "summary"]
    return Evaluation(**{name: summary[name] for name in names}, summary=summary)
