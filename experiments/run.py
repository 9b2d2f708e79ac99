"""Trains what an experiment lacks, and draws its figure.

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
import logging
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from experiments import plan, registry
from laser_tf import config_values, errors
from laser_tf.evaluation import evaluation_files
from laser_tf.host import log_messages
from launch import found_config, subcommand


def main(arguments: Sequence[str]) -> None:
    """Trains and draws an experiment.

    Args:
      arguments: Command line without the name of the program.

    Raises:
      UserError: For an unknown experiment, an invalid value, or a run that fails.
    """
    given = _parse_arguments(arguments)
    experiment = registry.load(given.experiment)
    planned = plan.make(
        given.experiment,
        experiment,
        workdir=pathlib.Path(given.workdir or f"runs/{given.experiment}").absolute(),
        tasks=given.tasks,
        seeds=given.seeds,
        overrides=_parse_overrides(given.override),
        config=given.config,
    )
    if not given.plot_only:
        _train(planned, given.parallel, given.extend)
        _evaluate_histories(planned)
    output = planned.workdir / "report"
    output.mkdir(parents=True, exist_ok=True)
    experiment.draw(experiment.runs(planned.workdir, planned.tasks, planned.seeds), output)
    print(f"Wrote {output}")


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.run",
        description=__doc__,
        epilog=f"experiments: {', '.join(registry.names())}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--experiment", required=True, help="name of the experiment")
    parser.add_argument("--tasks", type=_names, default=(), help="tasks, separated by commas")
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
    parser.add_argument("--plot_only", action="store_true", help="draw what has been trained")
    return parser.parse_args(arguments)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def _parse_overrides(given: Sequence[str]) -> dict[str, Any]:
    overrides = {}
    for entry in given:
        key, separator, text = entry.partition("=")
        if not separator or key.count(".") != 1:
            raise errors.UserError(f"--override must be SECTION.KEY=VALUE, got {entry}.")
        overrides[key] = config_values.parse_value(text)
    return overrides


def _train(planned: plan.Plan, parallel: int, extend: bool) -> None:
    """Trains what is missing of all runs, on this machine or on a cluster."""
    experiment, cluster = planned.experiment, None
    if experiment.command == "train":
        cluster = planned.runs[0].parsed.cluster
    # A sweep, or a run of several processes, spreads over the cluster by itself.
    is_spread = bool(cluster and cluster.address and not cluster.actors)
    has_logs = parallel > 1 or is_spread
    commands = [run.command(experiment.command, extend, has_logs) for run in planned.runs]
    if not is_spread:
        subcommand.run_all(commands, parallel)
        return
    from laser_tf.cluster import machines, ray_session, remote_command

    requested = cluster.learner_cpus, cluster.learner_gpus

    def start(command: subcommand.Command) -> remote_command.RemoteCommand:
        arguments = (*command.python_arguments, "--config.cluster.address=")
        return remote_command.RemoteCommand(arguments, command.log, *requested)

    with ray_session.session(cluster, *requested):
        machines.check_versions()
        subcommand.run_all(commands, parallel, start)


def _evaluate_histories(planned: plan.Plan) -> None:
    """Evaluates each run with every length of history for which it has no evaluation."""
    for run in planned.runs if planned.experiment.history_lengths else ():
        settings = run.first.run
        for length in (0, *planned.experiment.history_lengths):
            if evaluation_files.has_the_runs(
                run.workdir, settings.env_frames, length, settings.evaluation_episodes
            ):
                continue
            logging.info("Evaluating %s with history length %s", run.title, length or "all")
            subcommand.run(
                "evaluate",
                f"--workdir={run.workdir}",
                f"--episodes={settings.evaluation_episodes}",
                "--trust_config",  # The user named the environment to train this run.
                f"--history_length={length}",
            )


if __name__ == "__main__":
    log_messages.show()
    try:
        main(sys.argv[1:])
    except errors.UserError as error:
        sys.exit(f"error: {found_config.one_line(error)}")
