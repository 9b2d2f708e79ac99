"""What stands in the report: from results to sections of the page, and the pictures in them."""

import functools
import logging
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from laser_tf.analysis import (
    conditions_table,
    found_sweeps,
    report_page,
    report_pictures,
    report_text,
    standings_table,
    sweep_diagnostics,
    sweep_results,
)
from laser_tf.sweeps import lineage


class Ranked(NamedTuple):
    """An agent and where it belongs."""

    condition: sweep_results.Condition
    replica: sweep_results.Replica
    agent: sweep_results.Agent


class _Album:
    """Pictures under the names of their files."""

    def __init__(self):
        self.pictures: dict[str, bytes] = {}

    def add(self, name: str, png: bytes, caption: str) -> report_page.Picture:
        """Takes a picture; the name may hold anything and need not be new."""
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60]
        files = (f"{plain}{suffix}.png" for suffix in ("", *range(2, len(self.pictures) + 3)))
        self.pictures[next(file for file in files if file not in self.pictures)] = png
        return report_page.Picture(png, caption)


def build(
    results: Sequence[sweep_results.SuiteResults],
    of_runs: Mapping[pathlib.Path, sweep_diagnostics.Scalars],
    notes: Sequence[str],
) -> tuple[list[report_page.Section], dict[str, bytes]]:
    """The page's sections and its pictures by file name.

    Args:
      results: of each suite.
      of_runs: what `sweep_diagnostics.read` says of each run's folder.
      notes: lines about what is missing.
    """
    album, sections = _Album(), []
    if notes:
        sections.append(report_page.Section("What is missing", [report_page.Notes(notes)]))
    for of_suite in results:
        sections += [_overview(of_suite, album), *_standings(of_suite)]
        sections += _diagnostics(of_suite, of_runs, album)
        sections += [
            _condition(of_suite.protocol, condition, album) for condition in of_suite.conditions
        ]
        sections.append(_agents_table(of_suite))
    return sections, album.pictures


def label_of(
    results: Sequence[sweep_results.SuiteResults],
    of_suite: sweep_results.SuiteResults,
    label: str,
) -> str:
    """A condition's name in files that hold all suites."""
    return f"{of_suite.protocol.suite}: {label}" if len(results) > 1 else label


def ranked(results: sweep_results.SuiteResults) -> list[Ranked]:
    """All agents of a suite, best first; those without a score last."""
    rows = [
        Ranked(condition, replica, agent)
        for condition in results.conditions
        for replica in condition.replicas
        for agent in replica.agents
    ]
    return sorted(rows, key=lambda row: -np.nan_to_num(row.agent.score, nan=-np.inf))


def _overview(results: sweep_results.SuiteResults, album: _Album) -> report_page.Section:
    protocol = results.protocol
    parts: list[report_page.Picture | report_page.Table | report_page.Notes] = []
    if any(np.isfinite(condition.curve.mean).any() for condition in results.conditions):
        png = report_pictures.conditions(results)
        parts.append(album.add(f"curves_{protocol.suite}", png, _describe(protocol)))
    parts += _summary(results)
    tasks = protocol.tasks
    what = tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"
    return report_page.Section(f"{protocol.suite}, {what}", parts)


def _describe(protocol: sweep_results.Protocol) -> str:
    frames = protocol.bucket * protocol.group
    return (
        f"Training episodes ({protocol.measure}) averaged in buckets of {protocol.bucket:,} env "
        "frames"
        + (f", {protocol.group} buckets a point ({frames:,})" if protocol.group > 1 else "")
        + (", median over tasks" if len(protocol.tasks) > 1 else "")
        + ", best agent of the sweep at each point; mean over replicas, shaded from the worst to "
        "the best replica. Thin and dashed where not all replicas have come yet."
    )


def _summary(results: sweep_results.SuiteResults) -> list[report_page.Table | report_page.Notes]:
    """The conditions side by side, and what their numbers are."""
    header = ["label", "replicas", "best agent", "median agent"]
    if results.protocol.is_normalised:
        header.append("agents at or below random play")
    rows = [_summary_row(results.protocol, condition) for condition in results.conditions]
    table = report_page.Table(header, rows, 1)
    note = (
        f"Final scores: mean of an agent's last {sweep_results.LAST_EPISODES} training episodes of "
        "each task, then the median over tasks. Mean over replicas, in brackets their range."
    )
    return [table, report_page.Notes([note])]


def _summary_row(protocol: sweep_results.Protocol, condition: sweep_results.Condition) -> list[str]:
    best, median, *counts = conditions_table.ranges(protocol, condition)
    render_score = functools.partial(report_text.format_score, protocol)
    return [
        condition.label,
        str(conditions_table.replicas(condition)),
        *(_range(of_one, render_score) for of_one in (best, median)),
        *(_range(of_one, report_text.format_value) for of_one in counts),
    ]


def _range(of_one: conditions_table.Range, render: Callable[[float], str]) -> str:
    if np.isnan(of_one.mean):
        return "–"
    mean, low, high = map(render, of_one)
    return mean if low == high else f"{mean} ({low} to {high})"


def _standings(results: sweep_results.SuiteResults) -> list[report_page.Section]:
    """Labels ranked over all tasks; nothing where there is one task or one label."""
    protocol, standings = results.protocol, standings_table.of_sweeps(results)
    if not standings:
        return []
    scores = ["median", "mean"] if protocol.is_normalised else []
    rows = [
        [
            label,
            *(report_text.format_score(protocol, getattr(standing, name)) for name in scores),
            f"{standing.mean_rank:.2f}",
            "–" if standing.elo is None else f"{standing.elo:.0f}",
        ]
        for label, standing in standings.items()
    ]
    table = report_page.Table(["label", *scores, "mean rank", "Elo"], rows, 1)
    note = (
        f"Over {len(protocol.tasks)} tasks, by the final scores of each replica's best agent, mean "
        "over replicas. Rank 1 is the best of a task. 400 Elo are odds of 10 to 1 of the higher "
        "score on a task; a dash: some labels win every task against all others."
    )
    return [report_page.Section("Standings", [table, report_page.Notes([note])])]


def _diagnostics(
    results: sweep_results.SuiteResults,
    of_runs: Mapping[pathlib.Path, sweep_diagnostics.Scalars],
    album: _Album,
) -> list[report_page.Section]:
    protocol = results.protocol
    curves = {
        condition.label: sweep_diagnostics.mean_curves(protocol, condition, of_runs)
        for condition in results.conditions
    }
    if not any(curves.values()):
        return []
    png = report_pictures.diagnostics(protocol, curves)
    caption = "Means over agents and replicas of what TensorBoard shows of each."
    picture = album.add(f"replay_{protocol.suite}", png, caption)
    return [report_page.Section("Shared replay", [picture])]


def _condition(
    protocol: sweep_results.Protocol, condition: sweep_results.Condition, album: _Album
) -> report_page.Section:
    """The agents of each replica, and the lineage of each population."""
    parts = []
    for replica in condition.replicas:
        where = f"Replica {replica.number}"
        if any(np.isfinite(agent.curve).any() for agent in replica.agents):
            png = report_pictures.agents(protocol, replica)
            name = f"agents_{condition.label}_{replica.number}"
            caption = f"{where}: all agents, best first in the legend."
            parts.append(album.add(name, png, caption))
        for sweep in replica.sweeps:
            decisions = _lineage(sweep)
            if decisions:
                last = max((agent.env_frames for agent in sweep.agents), default=0)
                name = f"lineage_{condition.label}_{replica.number}"
                caption = (
                    f"{where}, {', '.join(sweep.tasks)}: arrows lead from an agent to its copy."
                )
                parts.append(album.add(name, report_pictures.population(decisions, last), caption))
    return report_page.Section(condition.label, parts)


def _lineage(sweep: found_sweeps.Sweep) -> list[lineage.Record]:
    try:
        return lineage.read(sweep.folder / lineage.FILE)
    except ValueError as error:
        logging.warning("%s", error)
        return []


def _agents_table(results: sweep_results.SuiteResults) -> report_page.Section:
    rows = ranked(results)
    names = list(dict.fromkeys(name for row in rows for name in row.agent.hyperparameters))
    header = ["label", "agent", "replica", "score", "episodes"]
    cells = [
        [
            row.condition.label,
            row.agent.name,
            str(row.replica.number),
            report_text.format_score(results.protocol, row.agent.score),
            str(row.agent.episodes),
            *(report_text.format_value(row.agent.hyperparameters.get(name)) for name in names),
        ]
        for row in rows
    ]
    table = report_page.Table([*header, *map(report_text.short_name, names)], cells, 2)
    note = "Hyper-parameters are those at the start; a population changes them as it goes."
    return report_page.Section(
        f"Agents on {results.protocol.suite}, best first", [table, report_page.Notes([note])]
    )
