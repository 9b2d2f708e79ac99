"""Trains an agent on one machine, then evaluates it.

    python -m launch.train --config=configs/laser_atari.py --workdir=runs/pong
    python -m launch.train --config=configs/laser_atari.py --config.environment.task=breakout

The same command with the same --workdir resumes a run that was interrupted.
"""

from laser_tf.runtime import private_network, versions

if __name__ == "__main__":
    # Before all other imports: a wrong TensorFlow fails while Reverb is imported, and only a
    # process of one thread can move to a network of its own.
    versions.check()
    _NETWORK_WARNING = private_network.enter()

import dataclasses
import logging
import pathlib
import signal
import threading
import time

from absl import flags
from ml_collections import config_flags

from laser_tf.environments import factory
from laser_tf.runtime import checkpointing, evaluator, learner, progress, run_config, training
from launch import command_line

_CONFIG = config_flags.DEFINE_config_file("config", "configs/laser_atari.py", "a file of configs/")
_WORKDIR = flags.DEFINE_string("workdir", None, "the run's folder [runs/<config>-<time>]")


def main() -> None:
    """Trains, evaluates and says where everything lies."""
    if _NETWORK_WARNING:
        logging.warning("%s", _NETWORK_WARNING)
    config = run_config.parse(command_line.config_values(_CONFIG))
    workdir = pathlib.Path(_WORKDIR.value or _default_workdir()).absolute()
    # Games that are not installed or do not fit each other are refused before anything is written.
    factory.make_environment(config.environment, seed=0, num_envs=1).close()
    checkpointing.open_workdir(
        workdir, dataclasses.asdict(config), {"versions": versions.recorded()}
    )
    command_line.divert_native_messages(workdir / "native.log")
    run = training.Training(config, workdir)
    logging.info("%s %s", "resuming" if run.resumed else "a new run in", workdir)
    if run.finished:
        logging.info("%s frames are trained already", f"{run.env_frames:,}")
    elif not _train(run, config):
        logging.info(
            "stopped at %s frames and saved; the same command resumes", f"{run.env_frames:,}"
        )
        return
    _evaluate(workdir, config)


def _train(run: training.Training, config: run_config.RunConfig) -> bool:
    """Trains until the budget is spent (True) or the user interrupts (False)."""
    stop = threading.Event()

    def interrupt(signal_number: int, _: object) -> None:
        signal.signal(signal_number, signal.SIG_DFL)  # a second Ctrl-C ends at once
        stop.set()

    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, interrupt)
    title = f"{config.environment.task}, seed {config.run.seed}"
    with progress.ProgressDisplay(config.run.env_frames, title) as display:
        run.run(stop, display)
    logging.info("mean return of the last 100 training episodes: %.2f", run.returns.mean_return())
    return run.finished


def _evaluate(workdir: pathlib.Path, config: run_config.RunConfig) -> None:
    if config.run.evaluation_episodes and not (workdir / "evaluation.json").exists():
        summary = evaluator.evaluate(
            workdir, episodes=config.run.evaluation_episodes, seed=config.run.seed, video=True
        )
        logging.info(
            "mean return of %d evaluation episodes: %.2f",
            summary["episodes"],
            summary["mean_return"],
        )
    for what, name in (
        ("configuration", "config.json"),
        ("learning curves", "tensorboard"),
        ("checkpoints", "checkpoints"),
        ("evaluation", "evaluation.json"),
        ("videos", "videos"),
        ("C++ libraries", "native.log"),
    ):
        if (workdir / name).exists():
            logging.info("%-16s %s", what, workdir / name)


def _default_workdir() -> str:
    name = pathlib.Path(command_line.config_file("config")).stem
    return f"runs/{name}-{time.strftime('%Y%m%d-%H%M%S')}"


if __name__ == "__main__":
    command_line.run(
        main,
        (
            ValueError,
            ImportError,  # a suite that is not installed
            checkpointing.WorkdirError,
            learner.NonFiniteLossError,
        ),
    )
