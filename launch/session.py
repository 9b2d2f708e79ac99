"""Trains and evaluates a run in this process, and lists its results."""

import logging
import pathlib
import signal

from laser_tf.api import plans
from laser_tf.evaluation import run_evaluation
from laser_tf.host import interruption
from laser_tf.training import run_config, training

_RESULTS = {
    "configuration": "config.json",
    "learning curves": "tensorboard",
    "checkpoints": "checkpoints",
    "evaluation": "evaluation.json",
    "evaluation curve": "evaluations.csv",
    "videos": "videos",
    "C++ libraries": "native.log",
}


def train_and_evaluate(
    run: training.Training, config: run_config.RunConfig, workdir: pathlib.Path
) -> int | None:
    """Trains until the budget is spent or a signal arrives, then evaluates.

    Returns:
      The signal that stopped the training, or None if the budget is spent. The run is saved.
    """
    signals: list[int] = []  # A list instead of an event: see `interruption.Interruption`.

    def interrupt(signal_number: int, _: object) -> None:
        # A second Ctrl-C ends the process at once; see `interruption` for the other signals.
        is_typed = signal_number == signal.SIGINT
        signal.signal(signal_number, signal.SIG_DFL if is_typed else signal.SIG_IGN)
        signals.append(signal_number)

    if not run.finished:
        interruption.install_handlers(interrupt)
    plans.train(run, config, workdir, lambda: bool(signals))
    if signals:  # After a signal no evaluation follows.
        logging.info(
            "Saved the run at %s frames; the same command resumes it", f"{run.env_frames:,}"
        )
        return signals[0]
    interruption.restore_default_handlers()  # An evaluation has nothing to save.
    evaluate(workdir, config)
    return None


def evaluate(workdir: pathlib.Path, config: run_config.RunConfig) -> None:
    """Evaluates a finished run if it has no evaluation yet, and logs the paths of all results."""
    run_evaluation.evaluate_finished(workdir, config)
    for what, name in _RESULTS.items():
        path = workdir / name
        if path.is_file() or path.is_dir() and any(path.iterdir()):
            logging.info("%-16s %s", what, path)
