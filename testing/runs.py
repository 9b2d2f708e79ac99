"""Runs of training in the process of the test."""

import dataclasses
import io
import pathlib
import threading
from collections.abc import Sequence

from laser_tf.environments import factory
from laser_tf.monitoring import progress
from laser_tf.training import callbacks as callbacks_module
from laser_tf.training import evaluations, membership, run_config, training
from laser_tf.workdir import run_directory


def make(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    callbacks: Sequence[callbacks_module.Callback] = (),
) -> training.Training:
    """Creates or resumes a run."""
    run_directory.open_workdir(workdir, dataclasses.asdict(config), {})
    return build(config, workdir, callbacks=callbacks)


def build(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    member: membership.Membership | None = None,
    callbacks: Sequence[callbacks_module.Callback] = (),
) -> training.Training:
    """Creates the run of a directory that is open already."""
    spec = factory.environment_spec(config.environment)
    return training.Training(config, workdir, spec, member, callbacks=callbacks)


def go_on(
    run: training.Training,
    stop: threading.Event | None = None,
    evaluator: evaluations.Evaluator | None = None,
) -> None:
    """Trains until the budget is spent or `stop` is set."""
    with progress.ProgressDisplay(1, "test", io.StringIO()) as display:
        run.run(stop.is_set if stop else lambda: False, display.update, evaluator)


def train(config: run_config.RunConfig, workdir: pathlib.Path) -> training.Training:
    """Creates a run and trains until the budget is spent."""
    run = make(config, workdir)
    go_on(run)
    return run
