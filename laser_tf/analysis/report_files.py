"""Writes the report of sweeps: one page, its pictures, and their numbers as CSV."""

import logging
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from laser_tf.analysis import (
    conditions_table,
    found_sweeps,
    panels,
    report_page,
    report_sections,
    standings_table,
    sweep_diagnostics,
    sweep_results,
)


def write(folder: pathlib.Path, output: pathlib.Path, bucket: int = 0) -> pathlib.Path:
    """Reports on all sweeps in a folder.

    Args:
      folder: searched at any depth.
      output: folder of what is written; made where it is missing.
      bucket: env frames; 0 for `aggregates.choose_bucket`'s.

    Returns:
      The page.

    Raises:
      WorkdirError: without a sweep.
      OSError: if the report cannot be written.
    """
    found, unread = found_sweeps.find(folder)
    results, missing = sweep_results.summarise(found, bucket)
    notes = unread + missing
    for note in notes:
        logging.warning("%s", note)
    output.mkdir(parents=True, exist_ok=True)
    of_runs = {
        run.folder: sweep_diagnostics.read(run.folder)
        for of_suite in results
        for condition in of_suite.conditions
        for run in condition.runs
    }
    sections, pictures = report_sections.build(results, of_runs, notes)
    for name, png in pictures.items():
        (output / name).write_bytes(png)
    _write_curves(results, output / "curves.csv")
    _write_conditions(results, output / "conditions.csv")
    _write_scores(results, of_runs, output / "scores.csv")
    _write_standings(results, output / "standings.csv")
    page = output / "report.html"
    text = report_page.render(f"Sweeps in {folder.resolve().name}", sections)
    page.write_text(text, encoding="utf-8")
    return page


def _write_curves(results: Sequence[sweep_results.SuiteResults], path: pathlib.Path) -> None:
    """Of each label, a row for each point that a replica has come to; frames are its middle."""
    rows = []
    for of_suite in results:
        for condition in of_suite.conditions:
            label = report_sections.label_of(results, of_suite, condition.label)
            curve = condition.curve
            frames = of_suite.protocol.env_frames(len(curve.mean))
            for k in np.flatnonzero(curve.replicas):
                values = panels.cells([curve.mean[k], curve.worst[k], curve.best[k]])
                rows.append([label, int(frames[k]), *values, curve.replicas[k]])
    panels.write_csv(path, ("label", "env_frames", "mean", "worst", "best", "replicas"), rows)


def _write_conditions(results: Sequence[sweep_results.SuiteResults], path: pathlib.Path) -> None:
    """A row for each label: what its sweeps come to, mean over replicas and range."""
    rows = [
        [
            report_sections.label_of(results, of_suite, condition.label),
            *conditions_table.row(of_suite.protocol, condition),
        ]
        for of_suite in results
        for condition in of_suite.conditions
    ]
    panels.write_csv(path, ("label", *conditions_table.header()), rows)


def _write_scores(
    results: Sequence[sweep_results.SuiteResults],
    of_runs: Mapping[pathlib.Path, sweep_diagnostics.Scalars],
    path: pathlib.Path,
) -> None:
    """A row for each agent, best first; empty cells for what an agent lacks."""
    ranked = [
        (report_sections.label_of(results, of_suite, row.condition.label), row)
        for of_suite in results
        for row in report_sections.ranked(of_suite)
    ]
    names = dict.fromkeys(name for _, row in ranked for name in row.agent.hyperparameters)
    rows = []
    for label, (_, replica, agent) in ranked:
        (score,) = panels.cells([agent.score])
        values = [agent.hyperparameters.get(name, "") for name in names]
        measures = sweep_diagnostics.measures([of_runs[run.folder] for run in agent.runs])
        rows.append(
            [label, replica.number, agent.name, score, agent.episodes, *values]
            + panels.cells(measures)
        )
    columns = ("label", "replica", "agent", "score", "episodes")
    panels.write_csv(path, (*columns, *names, *sweep_diagnostics.MEASURES), rows)


def _write_standings(results: Sequence[sweep_results.SuiteResults], path: pathlib.Path) -> None:
    """A row for each label that can be ranked, suite by suite, best mean rank first."""
    rows = []
    for of_suite in results:
        rows += [
            [report_sections.label_of(results, of_suite, label), *cells]
            for label, *cells in standings_table.rows(standings_table.of_sweeps(of_suite))
        ]
    panels.write_csv(path, standings_table.COLUMNS, rows)
