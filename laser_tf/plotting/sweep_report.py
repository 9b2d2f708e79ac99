"""Report of sweeps: one HTML page, its figures, and their numbers as CSV."""

import base64
import collections
import html
import itertools
import logging
import pathlib
import re
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from laser_tf.plotting import curves, sweep_figures, sweep_results, sweep_tables, tables
from laser_tf.scores import ranking
from laser_tf.sweeps import lineage
from laser_tf.workdir import atomic

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 52rem; margin: auto;
       padding: 0 1rem 3rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
figcaption, .note { color: #555; font-size: .9rem; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #ddd;
         white-space: nowrap; }
"""
_SCORES_NOTE = (
    "Final scores: mean of {} of each task, then the median over tasks. Mean, interval and range "
    "over seeds."
)
_TRAINED = f"a member's last {tables.EPISODES} training episodes"
_EVALUATED = "a member's evaluation episodes after training"
_STANDINGS_NOTE = (
    "By the final scores of each seed's best member, mean over seeds. Rank 1 is the best of a "
    "task. A difference of 400 Elo means odds of 10 to 1 for the higher score on a task. No Elo: "
    "some labels win every task against all others."
)
_MEMBERS_NOTE = "Hyper-parameters are those at the start; PBT changes them during the run."


def write(folder: pathlib.Path, output: pathlib.Path, bucket: int = 0) -> pathlib.Path:
    """Reports on all sweeps in a directory, at any depth, and returns the path of the page.

    `output`, the directory of the report, is created if missing. For `bucket` see
    `sweep_results.summarise`.

    Raises:
      WorkdirError: If there is no sweep.
      OSError: If the report cannot be written.
    """
    found, unread = sweep_tables.find(folder)
    results, missing = sweep_results.summarise(found, bucket)
    for note in unread + missing:
        logging.warning("%s", note)
    output.mkdir(parents=True, exist_ok=True)
    page = _Page(output, f"Sweeps in {folder.resolve().name}", unread + missing)
    csv_files = collections.defaultdict(list)
    for suite in results:
        prefix = f"{suite.suite}: " if len(results) > 1 else ""
        for name, table in _report_suite(page, suite).items():
            csv_files[name].append(table.assign(label=prefix + table["label"]))
    for name, parts in csv_files.items():
        tables.write_csv(pd.concat(parts, ignore_index=True), output / name)
    return page.write()


class _Page:
    """An HTML page that contains its figures; each is also a file."""

    def __init__(self, output: pathlib.Path, title: str, notes: Sequence[str]):
        self._output = output
        self._title = html.escape(title)
        self._content: list[str] = []
        self._names: set[str] = set()
        if notes:
            lines = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
            self._content.append(f'<h2>What is missing</h2>\n<ul class="note">{lines}</ul>\n')

    def add(
        self,
        heading: str,
        table: pd.DataFrame | None = None,
        note: str = "",
        figures: Sequence[str] = (),
    ) -> None:
        """Adds a heading with results of `figure`, a table and a note."""
        self._content += [f"<h2>{html.escape(heading)}</h2>\n", *figures]
        if table is not None:
            text = table.to_html(index=False, na_rep="–", float_format="{:.4g}".format, border=0)
            self._content.append(f'<div class="table">{text}</div>\n')
        if note:
            self._content.append(f'<p class="note">{html.escape(note)}</p>\n')

    def figure(self, name: str, figure: Figure, caption: str, legend_title: str = "") -> str:
        """Writes a figure to its own file; returns its HTML."""
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60]
        file = plain if plain not in self._names else f"{plain}{len(self._names)}"
        self._names.add(file)
        path = self._output / f"{file}.png"
        curves.save(figure, path, legend_title)
        data, caption = base64.b64encode(path.read_bytes()).decode(), html.escape(caption)
        return (
            f'<figure><img src="data:image/png;base64,{data}" alt="{caption}">'
            f"<figcaption>{caption}</figcaption></figure>\n"
        )

    def write(self) -> pathlib.Path:
        """Writes and returns `report.html`."""
        path = self._output / "report.html"
        atomic.write(
            path,
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{self._title}</title>\n<style>{_STYLE}</style>\n</head>\n"
            f"<body>\n<h1>{self._title}</h1>\n{''.join(self._content)}</body>\n</html>\n",
        )
        return path


def _report_suite(page: _Page, results: sweep_results.Results) -> dict[str, pd.DataFrame]:
    """Adds all sections of a suite; returns the tables of its CSV files by name."""
    diagnostics = sweep_tables.read_diagnostics(results.sweeps)
    measures = sweep_tables.measures(diagnostics)
    members = results.members().join(measures, sweep_tables.KEYS)
    conditions = results.conditions().melt(["label", "seed"], var_name="measure")
    conditions = conditions.sort_values("label", kind="stable")
    csv_files = {
        "scores.csv": members,
        "conditions.csv": tables.summarise(conditions, ("label", "measure")),
    }
    best = results.best_curves().rename(columns={"score": "value"})
    figures = []
    if len(best):
        csv_files["curves.csv"] = tables.summarise(best, ("label", tables.ENV_FRAMES))
        figure = sweep_figures.draw_conditions(results, best)
        figures.append(page.figure(f"curves_{results.suite}", figure, _describe(results)))
    heading = f"{results.suite}, {_join(results.tasks)}"
    note = _SCORES_NOTE.format(_EVALUATED if results.is_evaluated else _TRAINED)
    page.add(heading, csv_files["conditions.csv"], note, figures)
    scores = results.best_scores()
    if len(scores):
        normalised = scores if results.is_normalised else None
        csv_files["standings.csv"] = ranking.standings(scores, normalised)
        page.add("Standings", csv_files["standings.csv"], _STANDINGS_NOTE)
    shared = diagnostics[diagnostics["metric"].isin(sweep_tables.DIAGNOSTICS)]
    if len(shared):
        figure = sweep_figures.draw_diagnostics(shared, results.bucket)
        caption = "Means over members and seeds of TensorBoard's metrics."
        page.add("Shared replay", figures=[page.figure(f"replay_{results.suite}", figure, caption)])
    for label, sweeps in itertools.groupby(results.sweeps, lambda sweep: sweep.label):
        page.add(label, figures=_member_figures(page, results, list(sweeps)))
    page.add(f"Members on {results.suite}, best first", members, _MEMBERS_NOTE)
    return csv_files


def _member_figures(
    page: _Page, results: sweep_results.Results, sweeps: Sequence[sweep_tables.Sweep]
) -> list[str]:
    """Returns the figures of a label: the members of each seed, and populations."""
    figures = []
    members = results.members()
    label = sweeps[0].label
    for seed in dict.fromkeys(sweep.seed for sweep in sweeps):
        chosen = "label == @label and seed == @seed"
        curve = results.curve.query(chosen).dropna()
        if len(curve):
            figure, title = sweep_figures.draw_members(results, curve, members.query(chosen))
            caption = f"Seed {seed}: all members, best first in the legend."
            figures.append(page.figure(f"members_{label}_{seed}", figure, caption, title))
    for sweep in sweeps:
        if decisions := _read_lineage(sweep):
            newest = max(sweep.progress().values(), default=0)
            figure = sweep_figures.draw_population(decisions, newest)
            tasks = _join(sweep.tasks)
            caption = f"Seed {sweep.seed}, {tasks}: arrows lead from a member to its copy."
            figures.append(page.figure(f"lineage_{sweep.label}_{sweep.seed}", figure, caption))
    return figures


def _describe(results: sweep_results.Results) -> str:
    """Returns the caption of the curves."""
    median = ", median over tasks" if len(results.tasks) > 1 else ""
    return (
        f"Training episodes ({results.measure}), {results.bucket:,} env frames a point{median}, "
        "best member of the sweep at each point; mean over seeds, shaded from the worst to the "
        "best seed."
    )


def _join(tasks: Sequence[str]) -> str:
    return tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"


def _read_lineage(sweep: sweep_tables.Sweep) -> list[lineage.Record]:
    try:
        return lineage.read(sweep.workdir / lineage.FILE)
    except ValueError as error:
        logging.warning("%s", error)
        return []
