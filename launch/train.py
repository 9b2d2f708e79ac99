"""Trains an agent on one machine, then evaluates it.

    python -m launch.train --config=configs/laser_atari.py --workdir=runs/pong
    python -m launch.train --config=configs/laser_atari.py --config.environment.task=breakout
    python -m launch.train --config=configs/laser_atari.py --init_from=runs/pong  # fine-tuning
    python -m launch.train --private_network=false  # for what reports to a server from the run

The same command with the same --workdir resumes a run that was interrupted.
"""

from laser_tf.host import interruption, private_network, versions

if __name__ == "__main__":
    import sys

    interruption.before_imports()
    # Before all other imports: only a process of one thread can move to a network of its own.
    versions.check()
    _NETWORK_WARNING = private_network.enter(sys.argv)

import dataclasses
import logging
import pathlib

from absl import flags

from laser_tf.environments import factory
from laser_tf.training import run_config
from launch import command_line

_CONFIG = command_line.define_config("configs/laser_atari.py")
_WORKDIR = flags.DEFINE_string("workdir", None, "the run's folder [runs/<config>-<time>]")
_PRIVATE_NETWORK = command_line.define_private_network()
_EXTEND = flags.DEFINE_bool(
    "extend", False, "take a higher run.env_frames, and a learning-rate schedule to there"
)
_INIT_FROM = flags.DEFINE_string(
    "init_from", None, "the folder of another run, whose newest weights a new run begins from"
)


def main() -> None:
    """Trains, evaluates and says where everything lies."""
    command_line.check_private_network(_PRIVATE_NETWORK)
    if _NETWORK_WARNING:
        logging.warning("%s", _NETWORK_WARNING)
    config = run_config.parse(command_line.config_values(_CONFIG))
    command_line.check_replay_servers(config.replay.servers, _PRIVATE_NETWORK)
    workdir = pathlib.Path(_WORKDIR.value or command_line.default_workdir("config")).absolute()
    # Games that are not installed or do not fit each other are refused before anything is written,
    # and so are weights that do not fit.
    environment = factory.make_environment(config.environment, seed=0, num_envs=1)
    # TensorFlow and Reverb take seconds to load: not before all is checked that can be.
    from laser_tf.host import run_folder
    from laser_tf.training import initial_weights, training
    from launch import session

    initial = initial_weights.find(workdir, _initial_workdir())
    if initial:
        initial_weights.check(initial, config, environment)
    environment.close()
    run_folder.open_workdir(
        workdir,
        dataclasses.asdict(config),
        {"versions": versions.recorded(), **(initial.record() if initial else {})},
        extend=_EXTEND.value,
    )
    command_line.divert_native_messages(workdir / "native.log")
    run = training.Training(config, workdir, initial=initial)
    stopped_by = session.run_to_the_end(run, config, workdir)
    if stopped_by:
        interruption.end_by(stopped_by)


def _initial_workdir() -> pathlib.Path | None:
    return pathlib.Path(_INIT_FROM.value).absolute() if _INIT_FROM.value else None


if __name__ == "__main__":
    command_line.run(main, (ValueError, ImportError))  # the latter: a suite that is not installed
