"""Trains an agent, then evaluates it.

    python -m launch.train --config=configs/laser.py:atari --workdir=runs/pong
    python -m launch.train --workdir=runs/pong  # resumes with the configuration of that run
    python -m launch.train --config=configs/laser.py:atari --config.environment.task=breakout
    python -m launch.train --config=configs/laser.py:atari --init_from=runs/pong  # fine-tuning
    python -m launch.train --config.cluster.actors=4  # in many processes; docs/distributed.md
    python -m launch.train --callbacks=my_module:MyCallback  # docs/callbacks.md

The same command with the same --workdir resumes a run that was interrupted.
"""

import sys

from laser_tf.host import interruption, private_network
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    # Before all other imports: only a process with one thread can move to a private network.
    versions.check()
    _NETWORK_WARNING = private_network.enter(sys.argv)

import dataclasses
import functools
import logging
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from absl import flags

from laser_tf import types
from laser_tf.environments import factory, user_modules
from laser_tf.training import callbacks as callbacks_module
from laser_tf.training import run_config
from laser_tf.workdir import lock, run_directory
from launch import callback_flag, command_line

if TYPE_CHECKING:  # The module imports TensorFlow.
    from laser_tf.training import initial_weights

_CONFIG = command_line.define_config("configs/laser.py:atari", resumes=True)
_WORKDIR = flags.DEFINE_string("workdir", None, "run directory [runs/<config>-<time>]")
_EXTEND = flags.DEFINE_bool(
    "extend", False, "accept a higher run.env_frames; the learning rate schedule then ends there"
)
_INIT_FROM = flags.DEFINE_string(
    "init_from", None, "run directory whose newest weights are the initial weights of a new run"
)
_CALLBACKS = flags.DEFINE_multi_string(
    "callbacks",
    [],
    "module:Class or module:Class(key=value, ...), called during training; may be given several "
    "times",
)
_TRUST_CONFIG = command_line.define_trust_config()


def main() -> None:
    """Trains and evaluates the run of the command line."""
    if _NETWORK_WARNING:
        logging.warning("%s", _NETWORK_WARNING)
    config = run_config.parse(_CONFIG.values())
    if _CONFIG.run and not _TRUST_CONFIG.value:
        user_code = config.environment.user_code()
        trusted_modules = user_code if "environment.task" in _CONFIG.overrides else ()
        user_modules.check_trusted(
            _CONFIG.run / run_directory.CONFIG_FILE, user_code, trusted_modules
        )
    command_line.check_elsewhere(config.replay.address, config.cluster.address)
    if config.cluster.actors and _CALLBACKS.value:
        raise command_line.UsageError(
            f"--callbacks must be left out with config.cluster.actors={config.cluster.actors}, got "
            f"{_CALLBACKS.value[0]}. Use --config.cluster.actors=0."
        )
    callbacks = callback_flag.make(_CALLBACKS.value)
    workdir = pathlib.Path(_WORKDIR.value or command_line.default_workdir(_CONFIG)).absolute()
    stopped_by = _run(config, workdir, callbacks)
    if stopped_by:
        interruption.end_by(stopped_by)


def _run(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    callbacks: Sequence[callbacks_module.Callback],
) -> int | None:
    """Checks the run, trains and evaluates it; returns the signal that stopped it, or None."""
    # Checks environment, agent and weights before writing anything.
    spec = factory.environment_spec(config.environment)
    config.agent.check_actions(spec.action)
    is_resumed = (workdir / run_directory.CONFIG_FILE).exists()
    if not is_resumed:  # The keys of an existing run cannot change.
        config.replay.check_observation(spec.observation)
    strategy = None
    if config.learner.num_devices > 1 and not config.cluster.actors:
        from laser_tf.training import strategies

        strategy = strategies.make(config.learner)  # Before TensorFlow computes anything.
    initial = _initial_weights(config, workdir, spec, is_resumed=is_resumed)
    open_workdir = functools.partial(
        run_directory.open_workdir,
        workdir,
        dataclasses.asdict(config),
        {
            "versions": versions.recorded(),
            run_directory.COMMAND: command_line.given_command("train", workdir),
            **(initial.record() if initial else {}),
        },
        defaults=run_config.defaults(dataclasses.asdict(config)),
        patience_seconds=lock.command_timeout(),
        extend=_EXTEND.value,
    )
    if config.cluster.actors:
        return _run_fleet(config, workdir, spec, initial, open_workdir)
    # TensorFlow and Reverb take seconds to load: only after the checks.
    from laser_tf.training import assembly, training
    from launch import session

    if not (initial or is_resumed):  # Otherwise the agent has been built before.
        assembly.build_agent(config, spec, "float32", seed=0)
    open_workdir()
    command_line.divert_native_messages(workdir / "native.log")
    run = training.Training(
        config, workdir, spec, initial=initial, strategy=strategy, callbacks=callbacks
    )
    return session.train_and_evaluate(run, config, workdir)


def _run_fleet(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    spec: types.EnvironmentSpec,
    initial: "initial_weights.InitialWeights | None",
    open_workdir: Callable[[], bool],
) -> int | None:
    """Trains on several processes; returns the signal that stopped the training, or None."""
    from laser_tf.cluster import run_job
    from laser_tf.monitoring import progress
    from launch import fleet_session

    def open_and_log() -> bool:
        resumed = open_workdir()
        logging.info("%s %s", "Resuming" if resumed else "Starting a run in", workdir)
        if config.cluster.address and not config.replay.address:
            logging.warning(
                "Replay listens on every interface of its machine, without authentication. "
                "docs/distributed.md shows how to protect it."
            )
        return True

    title = f"{config.environment.task}, seed {config.run.seed}, {config.cluster.actors} actors"
    display = progress.ProgressDisplay(config.run.env_frames, title, sys.stdout)
    job = run_job.RunJob(config, spec, initial, display)
    stopped_by = fleet_session.run(job, config.cluster, workdir, open_and_log)
    if stopped_by is None:
        interruption.restore_default_handlers()  # An evaluation has nothing to save.
        from launch import session  # Imports TensorFlow, which the driver does not need.

        session.evaluate(workdir, config)
    return stopped_by


def _initial_weights(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    spec: types.EnvironmentSpec,
    *,
    is_resumed: bool,
) -> "initial_weights.InitialWeights | None":
    """Returns the weights of another run that are the initial weights of this run, if any."""
    wanted = pathlib.Path(_INIT_FROM.value).absolute() if _INIT_FROM.value else None
    if not wanted and not (is_resumed and run_directory.read_origin(workdir)):
        return None
    from laser_tf.training import initial_weights

    initial = initial_weights.find(
        workdir, wanted, config.environment.user_code(), _TRUST_CONFIG.value
    )
    if initial:
        initial_weights.check(initial, config, spec)
    return initial


if __name__ == "__main__":
    command_line.run(main)
