"""The papers' comparisons at a scale of one's own: trains, aggregates and draws.

    python -m launch.reproduce --figure=3_left
    python -m launch.reproduce --figure=3_right --games=breakout --config.run.env_frames=100000
    python -m launch.reproduce --figure=r2d2_1 --replicas=1
    python -m launch.reproduce --figure=r2d2_5 --history_lengths=40,10,1
    python -m launch.reproduce --figure=acer_2 --games=cheetah/run
    python -m launch.reproduce --figure=reactor_3 --config.run.env_frames=300000
    python -m launch.reproduce --figure=agents --config.run.env_frames=300000 --replicas=1
    python -m launch.reproduce --figure=sharing --replicas=10
    python -m launch.reproduce --figure=atari --games=pong,breakout --seeds=2 --parallel=2

The same command goes on where it stopped. The defaults are for two cores and hours.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import itertools
import pathlib
import sys
import types
from collections.abc import Mapping, Sequence

from absl import flags

from laser_tf import config_values
from laser_tf.analysis import figure, figures
from laser_tf.sweeps import sweep_config
from laser_tf.training import cluster_config, run_config
from laser_tf.workdir import identity
from launch import command_line, figure_choices, found_config, memory_evaluations, subcommand

_FIGURE = flags.DEFINE_enum(
    "figure",
    None,
    tuple(figures.ALL),
    "one of LASER's figures, of another agent's (r2d2_, acer_, reactor_), agents: all on the same "
    "games, sharing, sharing_vizdoom: agents that learn beside others that collapse, or atari: "
    "LASER beside Dopamine's published curves",
)


def default_config(arguments: Sequence[str]) -> str | None:
    """The figure's configuration file, which must be known to parse the other flags.

    Args:
      arguments: the command line, the program's name first.

    Returns:
      Its path; None for a figure that there is not, which is told when flags are parsed.
    """
    name = command_line.given_flag(arguments, "figure", None)
    # Without a figure any will do, so that `main` gets to say what is missing.
    name = name or next(iter(figures.ALL))
    return figures.ALL[name].config if name in figures.ALL else None


_CONFIG = command_line.define_config(default_config(sys.argv))
_GAMES = flags.DEFINE_list("games", None, "tasks, each by itself [the figure's]")
_REPLICAS = flags.DEFINE_integer("replicas", 3, "repetitions, with other seeds; or --seeds", 1)
flags.DEFINE_alias("seeds", "replicas")
_PARALLEL = flags.DEFINE_integer(
    "parallel", 1, "runs at once; of several, each one's output is in <its folder>.log", 1
)
_HISTORY_LENGTHS = flags.DEFINE_list(
    "history_lengths",
    None,
    f"r2d2_5: agent steps that the policy remembers [{','.join(figure_choices.HISTORIES)}]",
)
_WORKDIR = flags.DEFINE_string("workdir", None, "of everything [runs/figure_<figure>]")
_EXTEND = flags.DEFINE_bool(
    "extend", False, "take a higher run.env_frames, and learning-rate schedules to there"
)


def main() -> None:
    """Makes what is missing of a figure, and draws it."""
    if not _FIGURE.value:
        raise command_line.UsageError(
            f"--figure is missing: choose one of {', '.join(figures.ALL)}"
        )
    name, chosen = _FIGURE.value, figures.ALL[_FIGURE.value]
    config = _config_of_figure(name, chosen)
    if name in figures.CHECKS:
        figures.CHECKS[name](name, config)
    games = figure_choices.games(name, _GAMES.value, config)
    histories = figure_choices.history_lengths(name, _HISTORY_LENGTHS.value)
    variants = _variants(name)
    figure_choices.check_values(name, variants, command_line.given_values(_CONFIG))
    games = _checked_games(chosen, config, variants, games)
    workdir = pathlib.Path(_WORKDIR.value or f"runs/figure_{name}").absolute()
    _make_runs(chosen, config, games, workdir)
    if chosen.restricts_memory:
        for folder in _folders(chosen.runs(workdir, games, _REPLICAS.value)):
            memory_evaluations.evaluate(
                folder,
                histories,
                config["run"]["evaluation_episodes"],
                config["run"]["env_frames"],
            )
    _draw(workdir, games, histories)


def _config_of_figure(name: str, chosen: figure.Figure) -> dict:
    """The nested values, those that the configuration leaves to their defaults among them.

    Raises:
      UsageError: if it is of a run where a figure compares sweeps.
    """
    values = command_line.config_values(_CONFIG)
    if chosen.makes_run == "sweep":
        if "sweep" not in values:
            raise command_line.UsageError(
                f"--config={command_line.config_file(_CONFIG.name)} has no section `sweep`: figure "
                f"{name} compares sweeps; use e.g. --config={chosen.config}"
            )
        sweep_config.check_given(values, command_line.given_values(_CONFIG))
    return config_values.changed(_completed(chosen, values), _defaults_and_given(chosen))


def _completed(chosen: figure.Figure, values: dict) -> dict:
    """A configuration with its keys' defaults, for the agent and the suite that the user names.

    Raises:
      ValueError: for an agent or a suite that there is not.
    """
    given = _defaults_and_given(chosen)
    choice = {key: given[key] for key in found_config.CHOOSING if key in given}
    return identity.with_defaults(values, found_config.defaults(values, choice, _parser(chosen)))


def _parser(chosen: figure.Figure) -> types.ModuleType:
    """What knows the configurations of a figure's runs."""
    return sweep_config if chosen.makes_run == "sweep" else run_config


def _folders(runs: figure.Runs) -> list[pathlib.Path]:
    return [run for of_game in runs.values() for of_label in of_game.values() for run in of_label]


def _variants(name: str) -> dict[str, dict]:
    """Label -> nested values of the configuration that a figure's condition has of its own.

    Raises:
      UsageError: if the user gives a configuration to a figure that has one for each run, or a
        value that a run's configuration does not have.
      ValueError: for an agent or a suite that there is not.
    """
    chosen = figures.ALL[name]
    own = [condition for condition in chosen.conditions if condition.config]
    if own and command_line.given_flag(sys.argv, _CONFIG.name, None):
        raise command_line.UsageError(
            f"--{_CONFIG.name}: figure {name} has a configuration for each of its agents; leave "
            "the option out, and set values of all of them by --config.<section>.<key>"
        )
    variants = {}
    for condition in chosen.conditions:
        if condition.argument or condition.config:
            path = _config_of(condition)
            variant = command_line.read_config_file(path)
            if variant is None:
                raise command_line.UsageError(f"there is no {path}, which figure {name} needs")
            variants[condition.label] = _completed(chosen, variant.to_dict())
            figure_choices.check_keys(
                condition.argument or path, variants[condition.label], _defaults_and_given(chosen)
            )
    return variants


def _checked_games(
    chosen: figure.Figure, config: dict, variants: Mapping[str, dict], games: Sequence[str]
) -> list[str]:
    """The games as their suite calls them, each once: one may have several names.

    Raises:
      ValueError: for what one of the runs would be refused for, before anything is trained: a game
        that there is not, or an impossible value.
    """
    parse = _parser(chosen).parse
    names = {}
    for condition in chosen.conditions:
        values = variants.get(condition.label, config)
        for game in games:
            changes = _changes(chosen, condition, config, game, 1)
            parsed = parse(config_values.changed(values, changes))
            run = parsed.first if chosen.makes_run == "sweep" else parsed
            names[game] = run.environment.task
    return list(dict.fromkeys(names.values()))


def _defaults_and_given(chosen: figure.Figure) -> dict[str, object]:
    """What the user, or else the figure, changes in every run, "section.key" -> value."""
    return {**chosen.defaults, **command_line.given_values(_CONFIG)}


def _changes(
    chosen: figure.Figure, condition: figure.Condition, config: dict, game: str, replica: int
) -> dict[str, object]:
    """What one run has otherwise than its configuration, "section.key" -> value."""
    changes = _defaults_and_given(chosen) | condition.values(config, game, replica)
    # Such a run is one process, which knows nothing of the cluster that it runs on.
    return changes | {"cluster.address": ""} if _is_spread(chosen, config) else changes


def _is_spread(chosen: figure.Figure, config: dict) -> bool:
    """Whether runs are single processes on machines of a cluster; sweeps spread their agents."""
    cluster = config.get("cluster", {})
    has_cluster = chosen.makes_run == "train" and cluster.get("address")
    return bool(has_cluster) and not cluster["actors"]


def _config_of(condition: figure.Condition) -> str:
    """What `--config` is in a condition's runs."""
    if condition.config:
        return condition.config
    given = command_line.config_file(_CONFIG.name)
    return f"{given.partition(':')[0]}:{condition.argument}" if condition.argument else given


def _make_runs(
    chosen: figure.Figure, config: dict, games: Sequence[str], workdir: pathlib.Path
) -> None:
    """Makes what is missing of all runs, here or on a cluster."""
    commands = _commands(chosen, config, games, workdir)
    if not _is_spread(chosen, config):
        subcommand.run_all(commands, _PARALLEL.value)
        return
    from laser_tf.cluster import ray_session, remote_command

    cluster = cluster_config.ClusterConfig(**config["cluster"])
    asked = cluster.learner_cpus, cluster.learner_gpus

    def start(command: subcommand.Command) -> remote_command.RemoteCommand:
        return remote_command.RemoteCommand(command.python_arguments, command.log, *asked)

    with ray_session.session(cluster, *asked):
        ray_session.check_versions()
        subcommand.run_all(commands, _PARALLEL.value, start)


def _commands(
    chosen: figure.Figure, config: dict, games: Sequence[str], workdir: pathlib.Path
) -> list[subcommand.Command]:
    """What makes the runs, one each."""
    commands = []
    has_logs = _PARALLEL.value > 1 or _is_spread(chosen, config)
    for replica, game, condition in itertools.product(
        range(1, _REPLICAS.value + 1), games, chosen.conditions
    ):
        folder = condition.folder(workdir, game, replica)
        values = _changes(chosen, condition, config, game, replica)
        arguments = (
            f"--config={_config_of(condition)}",
            f"--workdir={folder}",
            *["--extend"] * _EXTEND.value,
            *(f"--config.{key}={value}" for key, value in values.items()),
        )
        title = f"{condition.label}, {game}, replica {replica}: {folder}"
        log = folder.with_name(f"{folder.name}.log") if has_logs else None
        commands.append(subcommand.Command(chosen.makes_run, arguments, title, log))
    return commands


def _draw(workdir: pathlib.Path, games: Sequence[str], histories: Sequence[int]) -> None:
    if _FIGURE.value not in figures.DRAWN:
        subcommand.run("report", f"--workdir={workdir}")
        return
    subcommand.run(
        "draw_figure",
        f"--figure={_FIGURE.value}",
        f"--workdir={workdir}",
        f"--replicas={_REPLICAS.value}",
        *(f"--game={game}" for game in games),
        *(f"--history_length={length}" for length in histories),
    )


if __name__ == "__main__":
    command_line.run(main)
