"""Figures 1b and 5 of R2D2 (Kapturowski et al. 2019): staleness of core states, and memory."""

import logging
import pathlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn

from laser_tf import errors
from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import tensorboard
from laser_tf.plotting import curves, tables
from laser_tf.workdir import run_directory

_STATES = {"first": "staleness/delta_q_first", "last": "staleness/delta_q_last"}
_QUANTITIES = {  # key of an evaluation -> column of the CSV, title of the panel, factor
    "mean_return": ("return", "mean episode return", 1.0),
    "greedy_match_fraction": ("greedy_match_percent", "greedy actions that match, %", 100.0),
    "max_logit_difference": ("max_q_difference", "difference of max Q-values", 1.0),
}


def write_staleness(runs: tables.Runs, output: pathlib.Path) -> None:
    """Writes figure 1: `delta_q.png`, `delta_q.csv`, `curves.png` and `curves.csv`.

    Delta Q (section 3) is given at the first and the last state of replayed sequences, for each run
    the mean over the second half of its env frames. At the first state it is zero for stored states
    without burn-in, which are compared with themselves. A run whose episodes are shorter than its
    sequences is left out with a warning.
    """
    rows = [
        (game, label, state, seed, _mean_of_second_half(run, metric))
        for game, label, seed, run in tables.each(runs)
        for state, metric in _STATES.items()
    ]
    table = pd.DataFrame(rows, columns=["game", "label", "state", "seed", "value"])
    tables.write_csv(tables.summarise(table, ("game", "label", "state")), output / "delta_q.csv")
    figure, axes = curves.make_panels(len(runs), len(runs))
    for panel, (game, values) in zip(axes[0], table.groupby("game", sort=False), strict=True):
        seaborn.barplot(
            values, x="state", y="value", hue="label", palette="colorblind",
            errorbar=("pi", 100), capsize=0.2, ax=panel,
        )  # fmt: skip
        panel.set(title=game, xlabel="state of the sequence", ylabel="Q-value discrepancy")
    curves.save(figure, output / "delta_q.png")
    curves.write(runs, output)


def _mean_of_second_half(run: pathlib.Path, metric: str) -> float:
    budget = run_directory.read_config(run)["run"]["env_frames"]
    frames, values = tensorboard.read_scalars(run / "tensorboard", metric)
    late = values[frames > budget / 2]
    if not len(late):
        logging.warning("Left out %s: no %s after %d env frames", run, metric, budget // 2)
        return np.nan
    return float(late.mean())


def write_memory(runs: tables.Runs, output: pathlib.Path, history_lengths: Sequence[int]) -> None:
    """Writes figure 5: `memory.png` and `memory.csv`.

    The runs have been evaluated with all of their memory and with each of `history_lengths`: agent
    steps that a policy remembers, including the current one.

    Raises:
      UserError: If an evaluation is missing or damaged, or a run has evaluations of other weights.
    """
    lengths = (0, *sorted(history_lengths, reverse=True))  # 0: all; longest first as in the paper
    rows = [
        (game, label, seed, str(length or "all"), column, factor * result.get(key, np.nan))
        for game, label, seed, run in tables.each(runs)
        for length, result in zip(lengths, _read_evaluations(run, lengths), strict=True)
        for key, (column, _, factor) in _QUANTITIES.items()
    ]
    columns = ["game", "label", "seed", "history_length", "quantity", "value"]
    table = pd.DataFrame(rows, columns=columns)
    by = ("game", "label", "quantity", "history_length")
    tables.write_csv(tables.summarise(table, by), output / "memory.csv")
    figure, axes = curves.make_panels(len(runs) * len(_QUANTITIES), len(_QUANTITIES))
    for row, (game, values) in zip(axes, table.groupby("game", sort=False), strict=True):
        for panel, (column, title, _) in zip(row, _QUANTITIES.values(), strict=True):
            seaborn.pointplot(
                values[values["quantity"] == column].dropna(), x="history_length", y="value",
                hue="label", order=[str(length or "all") for length in lengths],
                palette="colorblind", errorbar=("pi", 100), ax=panel,
            )  # fmt: skip
            panel.set(title=title, xlabel=f"{game}: k, agent steps remembered", ylabel="")
            panel.grid(alpha=0.3)
    curves.save(figure, output / "memory.png")


def _read_evaluations(run: pathlib.Path, lengths: Sequence[int]) -> list[dict]:
    results = []
    for length in lengths:
        result = evaluation_files.standard_evaluation(run, 0, length)
        if not result:
            raise errors.UserError(
                f"{run} must have an evaluation with --history_length={length}, got none. Run the "
                "experiment again without --plot_only."
            )
        results.append(result)
    frames = {result["env_frames"] for result in results}
    if len(frames) > 1:
        raise errors.UserError(
            f"{run} must have evaluations of the same weights, got weights after "
            f"{' and '.join(map(str, frames))} env frames. Run the experiment again without "
            "--plot_only."
        )
    return results
