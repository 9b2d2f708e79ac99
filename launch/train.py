"""Trains an agent, then evaluates it.

    python -m launch.train --config=laser:atari --workdir=runs/pong
    python -m launch.train --workdir=runs/pong  # resumes with the configuration of that run
    python -m launch.train --workdir=runs/pong --override=learner.learning_rate=1e-4
    python -m launch.train --config=laser:atari --config.environment.task=breakout
    python -m launch.train --config=laser:atari --init_from=runs/pong  # fine-tuning
    python -m launch.train --config.cluster.actors=4  # several processes; docs/distributed.md
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
import logging
import pathlib
from collections.abc import Sequence

from absl import flags

from laser_tf import user_code
from laser_tf.api import plans
from laser_tf.host import native_messages
from laser_tf.training import callbacks as callbacks_module
from laser_tf.training import run_config
from laser_tf.workdir import overrides, run_directory
from launch import command_line, config_flag

_CONFIG = command_line.define_config("configs/laser.py:atari", resumes=True)
_WORKDIR = command_line.define_path("workdir", "run directory [runs/<config>-<time>]")
_EXTEND = flags.DEFINE_bool(
    "extend", False, "accept a higher run.env_frames; the learning rate schedule then ends there"
)
_OVERRIDE = flags.DEFINE_multi_string(
    "override", [], "SECTION.KEY=VALUE: changes a setting of the run in --workdir from now on"
)
_INIT_FROM = command_line.define_path(
    "init_from", "run directory whose newest weights are the initial weights of a new run"
)
_CALLBACKS = flags.DEFINE_multi_string(
    "callbacks", [], "module:Class or module:Class(key=value, ...), called during training"
)
_TRUST_CONFIG = command_line.define_trust_config()


def main() -> None:
    """Trains and evaluates the run of the command line."""
    if _NETWORK_WARNING:
        logging.warning("%s", _NETWORK_WARNING)
    config = run_config.parse(_CONFIG.values())
    if _CONFIG.run and not _TRUST_CONFIG.value:
        code = config.environment.user_code()
        named = code if "environment.task" in _CONFIG.overrides else ()
        user_code.check_trusted(_CONFIG.run / run_directory.CONFIG_FILE, code, named)
    workdir = pathlib.Path(_WORKDIR.value or command_line.default_workdir(_CONFIG)).absolute()
    overridden = command_line.key_values(_OVERRIDE, "SECTION.KEY=VALUE")
    values = dataclasses.asdict(config)
    overrides.check(overridden, values)
    changes = config_flag.parse_texts(values, overridden)
    config = plans.with_overrides(config, workdir, changes)
    command_line.check_reachable(config.replay.address, config.cluster.address)
    if config.cluster.actors and _CALLBACKS.value:
        raise command_line.UsageError(
            f"--callbacks must be left out with config.cluster.actors={config.cluster.actors}, got "
            f"{_CALLBACKS.value[0]}. Use --config.cluster.actors=0."
        )
    callbacks = [command_line.make_callback(entry) for entry in _CALLBACKS.value]
    plan = plans.check(
        config,
        workdir,
        command=command_line.given_command("train", workdir),
        extend=_EXTEND.value,
        init_from=pathlib.Path(_INIT_FROM.value).absolute() if _INIT_FROM.value else None,
        trust_config=_TRUST_CONFIG.value,
        overridden=tuple(overridden),
    )
    stopped_by = _run_fleet(plan) if config.cluster.actors else _run(plan, callbacks)
    if stopped_by:
        interruption.end_by(stopped_by)


def _run(plan: plans.Plan, callbacks: Sequence[callbacks_module.Callback]) -> int | None:
    """Trains in this process, then evaluates; returns the signal that stopped it, or None."""
    # TensorFlow and Reverb take seconds to load: only after the checks.
    from launch import session

    with plans.started(plan, callbacks) as run:
        return session.train_and_evaluate(run, plan.config, plan.workdir)


def _run_fleet(plan: plans.Plan) -> int | None:
    """Trains in several processes, then evaluates; returns the signal that stopped it, or None."""
    from laser_tf.cluster import run_work
    from laser_tf.monitoring import progress
    from launch import fleet_session

    config, workdir = plan.config, plan.workdir

    def open_and_log() -> bool:
        resumed = plan.open_workdir()
        logging.info("%s %s", "Resuming" if resumed else "Starting a run in", workdir)
        if config.cluster.address and not config.replay.address:
            logging.warning(
                "Replay listens on every interface of its machine, without authentication. "
                "docs/distributed.md shows how to protect it."
            )
        return True

    title = f"{config.environment.task}, seed {config.run.seed}, {config.cluster.actors} actors"
    display = progress.ProgressDisplay(config.run.env_frames, title)
    job = run_work.RunWork(config, plan.spec, plan.initial, display)
    stopped_by = fleet_session.run(job, config.cluster, workdir, open_and_log)
    if stopped_by is None:
        interruption.restore_default_handlers()  # An evaluation has nothing to save.
        from launch import session  # Imports TensorFlow, which the driver does not need.

        with native_messages.diverted(workdir / native_messages.FILE):
            session.evaluate(workdir, config)
    return stopped_by


if __name__ == "__main__":
    command_line.run(main)
