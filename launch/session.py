"""A run from its start to its evaluation: trained, evaluated, and told about."""

import logging
import pathlib
import signal

from laser_tf.evaluation import after_training, evaluator_process
from laser_tf.host import interruption
from laser_tf.monitoring import progress
from laser_tf.training import run_config, training


def run_to_the_end(
    run: training.Training, config: run_config.RunConfig, workdir: pathlib.Path
) -> int | None:
    """Trains until the budget is spent or the user interrupts, evaluates, says where all lies.

    Args:
      run: new or resumed.
      config: of the run.
      workdir: its folder.

    Returns:
      The signal that stopped the training, which is saved; None where the budget is spent.
    """
    logging.info("%s %s", "resuming" if run.resumed else "a new run in", workdir)
    if run.finished:
        logging.info("%s frames are trained already", f"{run.env_frames:,}")
    else:
        signals = _train(run, config, workdir)
        if signals:  # even where the budget is spent: whoever stops a run waits for no evaluation
            logging.info(
                "stopped at %s frames and saved; the same command resumes", f"{run.env_frames:,}"
            )
            return signals[0]
    interruption.restore_default_handlers()  # an evaluation has nothing to save
    evaluate(workdir, config)
    return None


def _train(
    run: training.Training, config: run_config.RunConfig, workdir: pathlib.Path
) -> list[int]:
    """Trains until the budget is spent or the user interrupts; returns the signals that came."""
    # A list, no event: see `interruption.Interruption`.
    signals: list[int] = []

    def interrupt(signal_number: int, _: object) -> None:
        # A second Ctrl-C ends at once; for the others see `interruption`.
        is_typed = signal_number == signal.SIGINT
        signal.signal(signal_number, signal.SIG_DFL if is_typed else signal.SIG_IGN)
        signals.append(signal_number)

    interruption.install_handlers(interrupt)
    title = f"{config.environment.task}, seed {config.run.seed}"
    with (
        progress.ProgressDisplay(config.run.env_frames, title) as display,
        evaluator_process.beside(config, workdir) as beside,
    ):
        run.run(lambda: bool(signals), display, beside)
    mean = progress.number(run.returns.mean_return(), 2)
    logging.info("mean return of the last 100 training episodes: %s", mean)
    return signals


def evaluate(workdir: pathlib.Path, config: run_config.RunConfig) -> None:
    """Evaluates a finished run, unless that is done, and says where all lies."""
    after_training.evaluate(workdir, config)
    for what, name in (
        ("configuration", "config.json"),
        ("learning curves", "tensorboard"),
        ("checkpoints", "checkpoints"),
        ("evaluation", "evaluation.json"),
        ("evaluation curve", "evaluations.csv"),
        ("videos", "videos"),
        ("C++ libraries", "native.log"),
    ):
        path = workdir / name
        if path.is_file() or path.is_dir() and any(path.iterdir()):
            logging.info("%-16s %s", what, workdir / name)
