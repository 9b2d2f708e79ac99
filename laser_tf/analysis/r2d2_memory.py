"""R2D2's figure 5: what remains of agents whose policy remembers the last k steps only."""

import json
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from laser_tf import errors
from laser_tf.analysis import figure, panels, seed_curves
from laser_tf.evaluation import evaluation_files


class _Quantity(NamedTuple):
    key: str  # of an evaluation's result
    column: str  # of the CSV, before _mean and the other parts
    title: str
    factor: float  # to the title's unit


_QUANTITIES = (
    _Quantity("mean_return", "return", "mean episode return", 1.0),
    _Quantity(
        "greedy_match_fraction", "greedy_match_percent", "greedy actions that match, %", 100.0
    ),
    _Quantity("max_logit_difference", "max_q_difference", "difference of max Q-values", 1.0),
)
_PARTS = ("mean", "interval_low", "interval_high", "min", "max")  # of a summary
_Memory = Mapping[str, seed_curves.Summary]  # column -> seeds [lengths]


def write(runs: figure.Runs, history_lengths: Sequence[int], output: pathlib.Path) -> None:
    """Writes `memory.png` and `memory.csv`.

    Args:
      runs: evaluated with all memory and with each length of history.
      history_lengths: agent steps, the current one included.
      output: a folder.

    Raises:
      UserError: if an evaluation is missing or damaged, or a run's are of different weights.
    """
    lengths = (0, *sorted(history_lengths, reverse=True))  # the longest first, as in the paper
    found = {
        game: {label: read(of_label, lengths) for label, of_label in of_game.items()}
        for game, of_game in runs.items()
    }
    parts = [f"{quantity.column}_{part}" for quantity in _QUANTITIES for part in _PARTS]
    columns = ("game", "strategy", "history_length", *parts, "seeds")
    panels.write_csv(output / "memory.csv", columns, _rows(found, lengths))
    with panels.drawn(output / "memory.png", len(found), len(_QUANTITIES)) as axes:
        for row, (game, of_game) in zip(axes, found.items(), strict=True):
            for panel, quantity in zip(row, _QUANTITIES, strict=True):
                places = range(len(lengths))  # evenly spaced: lengths may be of any scale
                for label, memory in of_game.items():
                    seed_curves.draw(panel, places, memory[quantity.column], label, marker="o")
                panel.set_xticks(places, map(_name, lengths))
                panel.set_xlim(-0.3, len(lengths) - 0.7)
                panel.set(title=quantity.title, xlabel=f"{game}: k, agent steps remembered")


def read(runs: Sequence[pathlib.Path], lengths: Sequence[int]) -> _Memory:
    """The seeds' evaluations at each length of history; 0, all memory, has a return alone.

    Raises:
      UserError: if one is missing or damaged, or a run's are of different weights.
    """
    results = [_read_run(run, lengths) for run in runs]
    return {
        quantity.column: seed_curves.summarise(
            [
                [quantity.factor * result.get(quantity.key, math.nan) for result in of_run]
                for of_run in results
            ]
        )
        for quantity in _QUANTITIES
    }


def _read_run(run: pathlib.Path, lengths: Sequence[int]) -> list[dict]:
    results = []
    for length in lengths:
        path = evaluation_files.result_file(run, length)
        try:
            result = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise errors.UserError(f"cannot read {path}: {errors.first_line(error)}") from None
        if not isinstance(result, dict):
            raise errors.UserError(f"cannot read {path}: it holds no evaluation")
        results.append(result)
    frames = {result.get("env_frames") for result in results}
    if len(frames) > 1:
        raise errors.UserError(
            f"{run} has evaluations after {' and '.join(map(str, frames))} env frames, which do "
            "not compare: launch.reproduce --figure=r2d2_5 makes those that are missing"
        )
    return results


def _rows(
    found: Mapping[str, Mapping[str, _Memory]], lengths: Sequence[int]
) -> Iterator[list[object]]:
    for game, of_game in found.items():
        for label, memory in of_game.items():
            for index, length in enumerate(lengths):
                values = [
                    part[index]
                    for quantity in _QUANTITIES
                    for part in memory[quantity.column][: len(_PARTS)]
                ]
                seeds = memory[_QUANTITIES[0].column].seeds
                yield [game, label, _name(length), *panels.cells(values), seeds]


def _name(length: int) -> str:
    return str(length or "all")
