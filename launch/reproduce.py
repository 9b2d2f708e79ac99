"""The papers' comparisons at a scale of one's own: trains, aggregates and draws.

    python -m launch.reproduce --figure=3_left
    python -m launch.reproduce --figure=3_right --games=breakout --config.run.env_frames=100000
    python -m launch.reproduce --figure=r2d2_1 --replicas=1
    python -m launch.reproduce --figure=r2d2_5 --history_lengths=40,10,1
    python -m launch.reproduce --figure=acer_2 --games=cheetah/run
    python -m launch.reproduce --figure=reactor_3 --config.run.env_frames=300000
    python -m launch.reproduce --figure=agents --config.run.env_frames=300000 --replicas=1
    python -m launch.reproduce --figure=sharing --replicas=10

The same command goes on where it stopped. The defaults are for two cores and hours.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import logging
import pathlib
import sys
from collections.abc import Iterable, Sequence

from absl import flags
from ml_collections import config_flags

from laser_tf.analysis import (
    figure,
    figures_acer,
    figures_agents,
    figures_laser,
    figures_r2d2,
    figures_reactor,
    figures_sharing,
)
from launch import command_line, memory_evaluations, subcommand

FIGURES: dict[str, figure.Figure] = (
    figures_laser.FIGURES
    | figures_r2d2.FIGURES
    | figures_acer.FIGURES
    | figures_reactor.FIGURES
    | figures_agents.FIGURES
    | figures_sharing.FIGURES
)
_CHECKS = {
    name: module.check
    for module in (figures_r2d2, figures_acer, figures_reactor, figures_sharing)
    for name in module.FIGURES
}

_HISTORIES = ("80", "60", "50", "40", "20", "10", "1")  # agent steps
_FIGURE = flags.DEFINE_enum(
    "figure",
    None,
    tuple(FIGURES),
    "one of LASER's figures, of another agent's (r2d2_, acer_, reactor_), agents: all on the same "
    "games, or sharing: agents that learn beside others that collapse",
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
    name = name or next(iter(FIGURES))
    return FIGURES[name].config if name in FIGURES else None


_CONFIG = command_line.define_config(default_config(sys.argv))
_GAMES = flags.DEFINE_list("games", None, "tasks, each by itself [the figure's]")
_REPLICAS = flags.DEFINE_integer("replicas", 3, "repetitions, with other seeds", 1)
_HISTORY_LENGTHS = flags.DEFINE_list(
    "history_lengths",
    None,
    f"r2d2_5: agent steps that the policy remembers [{','.join(_HISTORIES)}]",
)
_WORKDIR = flags.DEFINE_string("workdir", None, "of everything [runs/figure_<figure>]")


def main() -> None:
    """Makes what is missing of a figure, one run after the other, and draws it."""
    if not _FIGURE.value:
        raise command_line.UsageError(f"--figure is missing: choose one of {', '.join(FIGURES)}")
    name, chosen = _FIGURE.value, FIGURES[_FIGURE.value]
    config = command_line.config_values(_CONFIG)
    if name in _CHECKS:
        _CHECKS[name](name, config)
    _check_variants(name)
    games = games_of(name, _GAMES.value, config)
    histories = history_lengths_of(name, _HISTORY_LENGTHS.value)
    workdir = pathlib.Path(_WORKDIR.value or f"runs/figure_{name}").absolute()
    for replica in range(1, _REPLICAS.value + 1):
        for game in games:
            for condition in chosen.conditions:
                folder = condition.folder(workdir, game, replica)
                logging.info("%s, %s, replica %d: %s", condition.label, game, replica, folder)
                values = condition.values(config, game, replica)
                _run(chosen.makes_run, folder, _config_of(condition), values)
                if chosen.restricts_memory:
                    episodes = config["run"]["evaluation_episodes"]
                    memory_evaluations.evaluate(folder, histories, episodes)
    _draw(workdir, games, histories)


def _check_variants(name: str) -> None:
    """Refuses, before anything is trained, what a configuration's variants would not take.

    Raises:
      UsageError: if the user gives a configuration to a figure that has one for each run, or a
        value that a run's configuration does not have.
    """
    own = [condition for condition in FIGURES[name].conditions if condition.config]
    if own and command_line.given_flag(sys.argv, _CONFIG.name, None):
        raise command_line.UsageError(
            f"--{_CONFIG.name}: figure {name} has a configuration for each of its agents; leave "
            "the option out, and set values of all of them by --config.<section>.<key>"
        )
    for condition in FIGURES[name].conditions:
        if condition.argument or condition.config:
            path = _config_of(condition)
            variant = command_line.read_config_file(path)
            if variant is None:
                raise command_line.UsageError(f"there is no {path}, which figure {name} needs")
            check_keys(condition.argument or path, variant.to_dict(), _overrides())


def check_keys(variant_name: str, variant: dict, given: Iterable[str]) -> None:
    """Checks that a configuration's variant has the keys "section.key" that the user sets.

    Raises:
      UsageError: for one that it does not have.
    """
    for key in given:
        section, _, name = key.partition(".")
        if name not in variant.get(section, {}):
            raise command_line.UsageError(
                f"--config.{key}: the figure has runs by {variant_name}, too, which has no such "
                "key; change it in the file of the configuration that has it"
            )


def games_of(name: str, given: Sequence[str] | None, config: dict) -> list[str]:
    """A figure's games: those given by the user, its own, or the configuration's.

    Raises:
      UsageError: if games are given to a figure of one task.
    """
    if FIGURES[name].games:
        return list(given or FIGURES[name].games)
    if given is not None:
        raise command_line.UsageError(
            f"--games: figure {name} has one task, the configuration's; use --config, or "
            "--config.environment.task"
        )
    return [config["environment"]["task"]]


def history_lengths_of(name: str, given: Sequence[str] | None) -> list[int]:
    """The lengths of history, agent steps, that a figure's runs are evaluated with.

    Raises:
      UsageError: if what the user gave is no length, or the figure has none.
    """
    if not FIGURES[name].restricts_memory:
        if given is not None:
            raise command_line.UsageError(
                f"--history_lengths: figure {name} has none; leave the option out"
            )
        return []
    lengths = given or _HISTORIES
    if not all(length.isdecimal() and int(length) for length in lengths):
        raise command_line.UsageError(
            f"--history_lengths={','.join(lengths)}: use numbers of agent steps, 1 or more"
        )
    return list(dict.fromkeys(map(int, lengths)))


def _overrides() -> dict[str, object]:
    return config_flags.get_override_values(flags.FLAGS[_CONFIG.name])


def _config_of(condition: figure.Condition) -> str:
    """What `--config` is in a condition's runs."""
    if condition.config:
        return condition.config
    given = command_line.config_file(_CONFIG.name)
    return f"{given.partition(':')[0]}:{condition.argument}" if condition.argument else given


def _run(command: str, folder: pathlib.Path, config: str, values: dict[str, object]) -> None:
    subcommand.run(
        command,
        f"--config={config}",
        f"--workdir={folder}",
        *(f"--config.{key}={value}" for key, value in (_overrides() | values).items()),
    )


def _draw(workdir: pathlib.Path, games: Sequence[str], histories: Sequence[int]) -> None:
    if _FIGURE.value in figures_laser.FIGURES:
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
    command_line.run(main, ())
