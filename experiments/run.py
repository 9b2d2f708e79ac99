"""Trains the missing runs of an experiment, and plots its figure.

    python -m experiments.run --experiment=laser_3_left
    python -m experiments.run --experiment=r2d2_1 --tasks=breakout --seeds=1 --parallel=2
    python -m experiments.run --experiment=atari --override=run.env_frames=4000000 --extend
    python -m experiments.run --experiment=reactor_3 --plot_only
    python -m experiments.run --experiment=acer_1 --override=cluster.address=auto --parallel=8

The same command continues interrupted runs. The defaults are for two cores and hours. With
`cluster.address`, single runs are processes on the machines of a Ray cluster.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import argparse
import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from experiments import base, plan
from laser_tf import config_values, errors
from laser_tf.evaluation import evaluation_files
from laser_tf.host import log_messages
from launch import subcommand


def main(arguments: Sequence[str]) -> None:
    """Trains and plots an experiment; raises UserError for bad input and a run that fails."""
    given = _parse_arguments(arguments)
    experiment = base.load(given.experiment)
    workdir = pathlib.Path(given.workdir or f"runs/{given.experiment}").expanduser().absolute()
    runs = plan.make(
        given.experiment,
        experiment,
        workdir=workdir,
        tasks=given.tasks,
        labels=given.label,
        seeds=given.seeds,
        overrides=_parse_overrides(given.override),
        config=given.config,
    )
    if not given.plot_only:
        _train(runs, given.parallel, given.extend)
        _evaluate_histories(runs, experiment.history_lengths)
    output = workdir / "report"
    try:
        output.mkdir(parents=True, exist_ok=True)
        experiment.draw(plan.directories(runs), output)
    except OSError as error:
        raise errors.UserError(
            f"cannot use {error.filename or output}: {error.strerror}. Use another --workdir."
        ) from None
    print(f"Wrote {output}")


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.run",
        description=__doc__,
        epilog=f"experiments: {', '.join(base.find())}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--experiment", required=True, help="name of the experiment")
    parser.add_argument("--tasks", type=_task_names, default=(), help="tasks, separated by commas")
    parser.add_argument(
        "--label", action="append", default=[], help="curve to train; may be given several times"
    )
    parser.add_argument("--seeds", type=_positive, default=3, help="number of repetitions")
    parser.add_argument(
        "--parallel", type=_positive, default=1, help="runs at once; several have a log each"
    )
    parser.add_argument("--workdir", default="", help="directory [runs/<experiment>]")
    parser.add_argument("--config", default="", help="configuration instead of the experiment's")
    parser.add_argument(
        "--override", action="append", default=[], metavar="SECTION.KEY=VALUE",
        help="value of all runs; may be given several times",
    )  # fmt: skip
    parser.add_argument("--extend", action="store_true", help="accept a higher run.env_frames")
    parser.add_argument("--plot_only", action="store_true", help="plot the runs that exist")
    return parser.parse_args(arguments)


def _task_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"must be names, got {text!r}. Use e.g. breakout,asterix.")
    return names


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be an integer above 0, got {text}. Use e.g. 2.")
    return int(text)


def _parse_overrides(given: Sequence[str]) -> dict[str, Any]:
    overrides = {}
    for entry in given:
        key, separator, text = entry.partition("=")
        if not separator or key.count(".") != 1:
            raise errors.UserError(f"--override must be SECTION.KEY=VALUE, got {entry}.")
        overrides[key] = config_values.parse_value(text)
    return overrides


def _train(runs: Sequence[plan.PlannedRun], parallel: int, extend: bool) -> None:
    """Trains what is missing of all runs, on this machine or on a cluster."""
    cluster, address = runs[0].first.cluster, runs[0].ray_address
    commands = [run.command(extend, has_log=parallel > 1 or bool(address)) for run in runs]
    if not address:
        subcommand.run_all(commands, parallel)
        return
    from laser_tf.cluster import ray_session, remote_command

    requested = cluster.learner_cpus, cluster.learner_gpus

    def start(command: subcommand.Command) -> remote_command.RemoteCommand:
        return remote_command.RemoteCommand(command.python_arguments, command.log, *requested)

    with ray_session.session(dataclasses.replace(cluster, address=address), *requested):
        subcommand.run_all(commands, parallel, start)


def _evaluate_histories(runs: Sequence[plan.PlannedRun], lengths: Sequence[int]) -> None:
    """Evaluates each run with every length of history for which it has no evaluation."""
    commands = []
    for run, length in itertools.product(runs, (0, *lengths) if lengths else ()):
        frames, episodes = run.first.run.env_frames, run.first.run.evaluation_episodes
        if not evaluation_files.standard_evaluation(run.workdir, frames, length, episodes):
            arguments = (
                f"--workdir={run.workdir}",
                f"--episodes={episodes}",
                "--trust_config",  # The user named the environment to train this run.
                f"--history_length={length}",
            )
            title = f"Evaluating {run.title} with history length {length or 'all'}"
            commands.append(subcommand.Command("evaluate", arguments, title))
    subcommand.run_all(commands)


if __name__ == "__main__":
    log_messages.show()
    try:
        main(sys.argv[1:])
    except errors.UserError as error:
        sys.exit(f"error: {errors.one_line(error)}")
