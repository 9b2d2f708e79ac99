"""Checks and starts runs in this process, for `laser_tf.train` and for commands."""

import contextlib
import dataclasses
import functools
import logging
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from laser_tf import config_values, errors, types
from laser_tf.environments import factory
from laser_tf.host import hardware, native_messages
from laser_tf.monitoring import progress
from laser_tf.training import learner_config, run_config
from laser_tf.workdir import lock, run_directory, versions

if TYPE_CHECKING:  # They import TensorFlow, which loads after all checks.
    import tensorflow as tf

    from laser_tf.training import callbacks as callbacks_module
    from laser_tf.training import initial_weights, training


class Plan(NamedTuple):
    """A run that has been checked."""

    config: run_config.RunConfig
    workdir: pathlib.Path
    spec: types.EnvironmentSpec
    initial: "initial_weights.InitialWeights | None"  # weights of another run to start from
    strategy: "tf.distribute.Strategy | None"  # strategy of several devices
    open_workdir: Callable[[], bool]  # opens and locks the directory; returns whether it is resumed


def with_overrides(
    config: run_config.RunConfig, workdir: pathlib.Path, changes: Mapping[str, Any]
) -> run_config.RunConfig:
    """Returns the configuration with the run's earlier overrides and then `changes`.

    Raises ConfigError for changes of a new run.
    """
    if not (workdir / run_directory.CONFIG_FILE).exists():
        if not changes:
            return config
        key = next(iter(changes))
        raise errors.ConfigError(
            f"--override={key} must change an existing run, got --workdir={workdir} without a "
            f"run. Use --config.{key}=VALUE for a new run."
        )
    values = dataclasses.asdict(config)
    earlier = run_directory.read_overrides(workdir, values)
    for key, value in earlier.items():
        logging.info("Using %s=%s of an earlier --override", key, value)
    config = run_config.parse(config_values.override(values, {**earlier, **changes}))
    unread = learner_config.RMSPROP_EPSILON
    if unread in changes and unread not in config.learner.tunable:
        raise errors.ConfigError(
            f"--override={unread} must be left out with learner.optimizer="
            f"{config.learner.optimizer}, got {changes[unread]}."
        )
    return config


def check(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    *,
    command: str = "",
    extend: bool = False,
    init_from: pathlib.Path | None = None,
    trust_config: bool = False,
    overridden: Collection[str] = (),
) -> Plan:
    """Checks environment, agent and weights of a run before anything is written.

    For the arguments and errors see `runs.train`. `command` resumes the run from a shell.
    `overridden` has the keys of an existing run whose values change, see `overrides.KEYS`.
    """
    spec = factory.environment_spec(config.environment)
    config.agent.check_actions(spec.action)
    is_resumed = (workdir / run_directory.CONFIG_FILE).exists()
    if not is_resumed:  # The keys of an existing run cannot change.
        config.replay.check_observation(spec.observation)
    strategy = None
    if not is_resumed and not config.cluster.actors:
        hardware.spare_cores(config.learner.spare_cores)  # Before TensorFlow computes anything.
    if config.learner.num_devices > 1 and not config.cluster.actors:
        from laser_tf.training import strategies

        strategy = strategies.make(config.learner)
    initial = _initial_weights(config, workdir, spec, init_from, trust_config)
    values = dataclasses.asdict(config)
    custom = run_config.user_code_of(values)
    if (custom or not config.cluster.actors) and not (initial or is_resumed):
        # Otherwise the agent has been built before, or another process builds it. Code of users is
        # checked here, where its errors reach the user and nothing is written.
        from laser_tf.training import assembly

        assembly.build_agent(config, spec, "float32", seed=0)

    open_workdir = functools.partial(
        run_directory.open_workdir,
        workdir,
        values,
        {
            "versions": versions.recorded(),
            **({run_directory.COMMAND: command} if command else {}),
            **(initial.record() if initial else {}),
        },
        defaults=run_config.defaults(values),
        patience_seconds=lock.command_timeout(),
        extend=extend,
        overridden=overridden,
    )
    return Plan(config, workdir, spec, initial, strategy, open_workdir)


def _initial_weights(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    spec: types.EnvironmentSpec,
    wanted: pathlib.Path | None,
    trust_config: bool,
) -> "initial_weights.InitialWeights | None":
    """Returns the weights of another run that are the initial weights of this run, if any."""
    source = find_origin(workdir, wanted)
    if not source:
        return None
    from laser_tf.training import initial_weights

    named = *config.environment.user_code(), *run_config.user_code_of(dataclasses.asdict(config))
    initial = initial_weights.read(source, named, trust_config)
    initial_weights.check(initial, config, spec)
    return initial


def find_origin(workdir: pathlib.Path, wanted: pathlib.Path | None) -> pathlib.Path | None:
    """Returns the run whose weights a run has to start from; None for its own or random weights.

    `wanted` is the directory of the other run, by default that in the run's `config.json`. Raises
    WorkdirError if the run started from another run.
    """
    if not (workdir / run_directory.CONFIG_FILE).exists():
        return wanted
    origin = run_directory.read_origin(workdir)
    if wanted and (not origin or wanted.resolve() != pathlib.Path(origin).resolve()):
        raise run_directory.WorkdirError(
            f"--init_from must be {origin or 'left out'} for {workdir}, which started from "
            f"{origin or 'fresh weights'}, got {wanted}. Use another --workdir for a new run."
        )
    return pathlib.Path(origin) if origin and not run_directory.has_checkpoint(workdir) else None


@contextlib.contextmanager
def started(
    plan: Plan, callbacks: "Sequence[callbacks_module.Callback]"
) -> Iterator["training.Training"]:
    """Opens the run directory and yields the run; then releases the directory.

    In the meantime, the output of C++ libraries goes to a file of the directory.
    """
    from laser_tf.training import training

    try:
        plan.open_workdir()
        hardware.spare_cores(plan.config.learner.spare_cores)
        with native_messages.diverted(plan.workdir / native_messages.FILE):
            yield training.Training(
                plan.config,
                plan.workdir,
                plan.spec,
                initial=plan.initial,
                strategy=plan.strategy,
                callbacks=callbacks,
            )
    finally:
        lock.release(plan.workdir)


def train(
    run: "training.Training",
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    should_stop: Callable[[], bool],
    stream: TextIO | None = None,
) -> None:
    """Trains a run, unless it is finished; shows its progress, by default on standard output."""
    from laser_tf.evaluation import evaluator_process

    logging.info("%s %s", "Resuming" if run.resumed else "Starting a run in", workdir)
    if run.finished:
        logging.info("Skipped training: the run has %s frames already", f"{run.env_frames:,}")
        return
    title = f"{config.environment.task}, seed {config.run.seed}"
    with (
        progress.ProgressDisplay(config.run.env_frames, title, stream) as display,
        evaluator_process.maybe_start(config, workdir, run.env_frames) as evaluator,
    ):
        run.run(should_stop, display.update, evaluator)
    if episodes := run.returns.num_episodes:
        mean = progress.number(run.returns.mean_return(), 2)
        logging.info("Reached a mean return of %s in the last %d training episodes", mean, episodes)
