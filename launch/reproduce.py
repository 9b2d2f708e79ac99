"""The papers' comparisons at a scale of one's own: trains, aggregates and draws.

    python -m launch.reproduce --figure=3_left
    python -m launch.reproduce --figure=3_right --games=breakout --config.run.env_frames=100000

The same command goes on where it stopped. The defaults are for two cores and hours.
"""

import contextlib
import logging
import pathlib
import sys
from collections.abc import Sequence

from absl import flags
from ml_collections import config_flags

from launch import command_line, figure, figures_laser, subcommand

FIGURES: dict[str, figure.Figure] = figures_laser.FIGURES

_FIGURE = flags.DEFINE_enum("figure", None, tuple(FIGURES), "which of LASER's figures, e.g. 3_left")
_CONFIG = config_flags.DEFINE_config_file("config", None, "a file of configs/ [the figure's]")
_GAMES = flags.DEFINE_list("games", None, "tasks, each by itself [the figure's]")
_REPLICAS = flags.DEFINE_integer("replicas", 3, "repetitions, with other seeds", 1)
_WORKDIR = flags.DEFINE_string("workdir", None, "of everything [runs/figure_<figure>]")


def default_config(arguments: Sequence[str]) -> list[str]:
    """The figure's `--config`, where the command line names none.

    Overrides, `--config.x=y`, are flags of the configuration, which must be known to parse them.

    Args:
      arguments: the command line, the program's name first.
    """
    early = flags.FlagValues()
    early.set_gnu_getopt(True)  # the value of a flag that is not known yet ends nothing
    name = flags.DEFINE_string("figure", None, "", flag_values=early)
    config = flags.DEFINE_string("config", None, "", flag_values=early)
    with contextlib.suppress(flags.Error):  # told by those who parse all flags
        early(arguments, known_only=True)
    early.mark_as_parsed()
    if config.value or name.value not in (None, *FIGURES):
        return []
    # Without a figure any will do, so that `main` gets to say what is missing.
    return [f"--config={FIGURES[name.value or next(iter(FIGURES))].config}"]


def main() -> None:
    """Makes what is missing of a figure, one run after the other, and draws it."""
    if not _FIGURE.value:
        raise command_line.UsageError(f"--figure is missing: choose one of {', '.join(FIGURES)}")
    name, chosen = _FIGURE.value, FIGURES[_FIGURE.value]
    config = command_line.config_values(_CONFIG)
    games = _GAMES.value or chosen.games
    workdir = pathlib.Path(_WORKDIR.value or f"runs/figure_{name}").absolute()
    for replica in range(1, _REPLICAS.value + 1):
        for game in games:
            for condition in chosen.conditions:
                folder = condition.folder(workdir, game, replica)
                logging.info("%s, %s, replica %d: %s", condition.label, game, replica, folder)
                _run(chosen.makes_run, folder, condition.values(config, game, replica))
    subcommand.run("report", f"--workdir={workdir}")


def _run(command: str, folder: pathlib.Path, values: dict[str, object]) -> None:
    given = config_flags.get_override_values(flags.FLAGS[_CONFIG.name])
    subcommand.run(
        command,
        f"--config={command_line.config_file(_CONFIG.name)}",
        f"--workdir={folder}",
        *(f"--config.{key}={value}" for key, value in (given | values).items()),
    )


if __name__ == "__main__":
    sys.argv[1:1] = default_config(sys.argv)  # where ml_collections looks for overrides
    command_line.run(main, ())
