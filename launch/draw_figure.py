"""Draws a figure of single runs, with the numbers as CSV beside it.

    python -m launch.draw_figure --figure=r2d2_1 --workdir=runs/figure_r2d2_1 --game=breakout

`launch.reproduce` makes the runs and then calls this. LASER's are drawn by `launch.report`.
Episodes that another machine's report has kept are drawn without its runs:

    python -m launch.draw_figure --figure=atari --workdir=runs/joined \
        --episodes=report/episodes.csv.gz
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import pathlib

from absl import flags

from laser_tf.analysis import (
    figure,
    figures,
    figures_acer,
    figures_agents,
    figures_atari,
    figures_sharing,
)
from launch import command_line

_FIGURE = flags.DEFINE_enum("figure", None, tuple(figures.DRAWN), "which figure")
_WORKDIR = flags.DEFINE_string("workdir", None, "the folder of the figure's runs")
_GAMES = flags.DEFINE_multi_string("game", [], "a task; once for each")
_REPLICAS = flags.DEFINE_integer("replicas", 3, "repetitions of each run", 1)
_EPISODES = flags.DEFINE_multi_string(
    "episodes", [], "atari: episodes.csv.gz of another report, whose runs are shown, too; once each"
)
_HISTORY_LENGTHS = flags.DEFINE_multi_integer(
    "history_length", [], "r2d2_5: agent steps of an evaluation's memory; once for each", 1
)


def main() -> None:
    """Writes everything to the folder's `report/`."""
    if not (_FIGURE.value and _WORKDIR.value and (_GAMES.value or _EPISODES.value)):
        raise command_line.UsageError("say what to draw: --figure, --workdir and --game are needed")
    if _EPISODES.value and _FIGURE.value not in figures_atari.FIGURES:
        raise command_line.UsageError(
            f"--figure={_FIGURE.value} is drawn from runs only: leave out --episodes"
        )
    if _HISTORY_LENGTHS.value and not figures.DRAWN[_FIGURE.value].restricts_memory:
        raise command_line.UsageError(
            f"--figure={_FIGURE.value} has no lengths of history: leave out --history_length"
        )
    if len(_GAMES.value) > 1 and not figures.DRAWN[_FIGURE.value].games:
        raise command_line.UsageError(
            f"--figure={_FIGURE.value} is of one task, not of {', '.join(_GAMES.value)}: name one"
        )
    workdir = pathlib.Path(_WORKDIR.value)
    runs = figures.DRAWN[_FIGURE.value].runs(workdir, _GAMES.value, _REPLICAS.value)
    output = workdir / "report"
    output.mkdir(parents=True, exist_ok=True)
    _draw(_FIGURE.value, runs, output)
    print(f"written: {output}")


def _draw(name: str, runs: figure.Runs, output: pathlib.Path) -> None:
    from laser_tf.analysis import (  # load TensorFlow
        acer_curves,
        agents_table,
        atari_comparison,
        companions,
        game_curves,
        r2d2_memory,
        r2d2_staleness,
    )

    if name == "r2d2_1":
        r2d2_staleness.write_discrepancies(runs, output)
        game_curves.write_by_frames(runs, output, "strategy")
    elif name == "r2d2_5":
        r2d2_memory.write(runs, _HISTORY_LENGTHS.value, output)
    elif name == "acer_1":
        acer_curves.write_by_experience_and_time(runs, output)
    elif name in figures_acer.FIGURES:
        acer_curves.write_with_deviations(runs, output)
    elif name in figures_agents.FIGURES:
        game_curves.write_by_frames_and_time(runs, output, game_curves.dashes(runs))
        agents_table.write(runs, output)
    elif name in figures_sharing.FIGURES:
        companions.write(runs, output, figures_sharing.FAILED_BELOW[name])
    elif name in figures_atari.FIGURES:
        atari_comparison.write(runs, output, [pathlib.Path(path) for path in _EPISODES.value])
    else:
        game_curves.write_by_frames(runs, output)


if __name__ == "__main__":
    command_line.run(main, (OSError,))
