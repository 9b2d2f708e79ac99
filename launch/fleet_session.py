"""A run on many processes, from its start to its evaluation."""

import contextlib
import logging
import pathlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from laser_tf import types
from laser_tf.cluster import fleet, ray_session, roles
from laser_tf.host import interruption
from laser_tf.monitoring import progress
from laser_tf.training import run_config
from launch import command_line

if TYPE_CHECKING:  # it needs TensorFlow
    from laser_tf.training import initial_weights


def run_to_the_end(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    spec: types.EnvironmentSpec,
    initial: "initial_weights.InitialWeights | None",
    open_workdir: Callable[[], bool],
) -> int | None:
    """Trains until the budget is spent or the user interrupts, and evaluates.

    Args:
      config: of the run.
      workdir: its folder.
      spec: of its environment.
      initial: what a run begins from that has no checkpoint yet.
      open_workdir: opens the folder, once there is a Ray to run in.

    Returns:
      The signal that stopped the training, which is saved; None where the budget is spent.

    Raises:
      UserError: if there is no such Ray, the folder is refused, or a role has failed for good.
    """
    interrupted = interruption.Interruption()
    cluster = config.cluster
    asked = fleet.asked_cpus(config), cluster.learners * cluster.learner_gpus
    with ray_session.session(cluster, *asked, interrupted):
        ray_session.check_versions()
        if interrupted.stop:  # meanwhile: nothing is written
            return interrupted.signal_number
        resumed = open_workdir()
        logging.info("%s %s", "resuming" if resumed else "a new run in", workdir)
        command_line.divert_native_messages(workdir / "native.log")
        if cluster.address and not config.replay.servers:
            logging.warning(
                "replay listens on every interface of its machine, without authentication: see "
                "docs/cluster.md for how to close it"
            )
        trained = fleet.Fleet(config, workdir, spec, initial)
        _train(config, trained, workdir, interrupted)
    if interrupted.stop:  # even where the budget is spent: see `session.run_to_the_end`
        logging.info("%s", roles.outcome(interrupted, trained.unsaved))
        return interrupted.signal_number
    interruption.give_back()  # an evaluation has nothing to save
    from launch import session  # TensorFlow, which this process did not need so far

    session.evaluate(workdir, config)
    return None


def _train(
    config: run_config.RunConfig,
    trained: fleet.Fleet,
    workdir: pathlib.Path,
    interrupted: interruption.Interruption,
) -> None:
    """Trains until the budget is spent or the user interrupts."""
    title = f"{config.environment.task}, seed {config.run.seed}, {config.cluster.actors} actors"
    # Ray prints to standard output when a process dies; what matters of it the fleet says.
    with (
        progress.ProgressDisplay(config.run.env_frames, title, sys.stdout) as display,
        (workdir / "native.log").open("a") as log,
        contextlib.redirect_stdout(log),
    ):
        trained.run(interrupted, display)
