"""Report of sweeps: one HTML page, its figures, and their numbers as CSV."""

import base64
import html
import logging
import pathlib
import re
from collections.abc import Mapping, Sequence

import pandas as pd

from laser_tf.plotting import agents_table, curves, diagnostics, sweep_figures, sweep_results
from laser_tf.sweeps import lineage

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


def write(folder: pathlib.Path, output: pathlib.Path, bucket: int = 0) -> pathlib.Path:
    """Reports on all sweeps in a directory.

    Args:
      folder: Searched at any depth.
      output: Directory of the report; created if missing.
      bucket: Env frames averaged into a point; 0: `aggregates.choose_bucket`.

    Returns:
      Path of the page.

    Raises:
      WorkdirError: If there is no sweep.
      OSError: If the report cannot be written.
    """
    found, unread = sweep_results.find(folder)
    results, missing = sweep_results.summarise(found, bucket)
    notes = unread + missing
    for note in notes:
        logging.warning("%s", note)
    output.mkdir(parents=True, exist_ok=True)
    report = _Report(output)
    for suite in results:
        report.add(suite, prefix=f"{suite.suite}: " if len(results) > 1 else "")
    for name, parts in report.tables.items():
        curves.write_csv(pd.concat(parts, ignore_index=True), output / name)
    page = output / "report.html"
    text = _render(f"Sweeps in {folder.resolve().name}", notes, report.sections)
    page.write_text(text, encoding="utf-8")
    return page


def _render(title: str, notes: Sequence[str], sections: Sequence[str]) -> str:
    """Returns the page; `sections` are HTML."""
    title, lines = html.escape(title), "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    missing = f'<h2>What is missing</h2>\n<ul class="note">{lines}</ul>\n' if notes else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f"{missing}{''.join(sections)}</body>\n</html>\n"
    )


class _Report:
    """Sections of the page and tables of the CSV files."""

    def __init__(self, output: pathlib.Path):
        self._output = output
        self.sections: list[str] = []
        self._names: set[str] = set()
        self.tables: dict[str, list[pd.DataFrame]] = {}

    def add(self, results: sweep_results.Results, prefix: str) -> None:
        """Adds all sections and tables of a suite; labels get a prefix in the CSV files."""
        best = results.best_curves().rename(columns={"score": "value"})
        best = best.dropna(subset="value")
        tables = {"scores.csv": self._scores(results)}
        if len(best):
            tables["curves.csv"] = curves.summarise(best, ("label", curves.ENV_FRAMES))
        tables["conditions.csv"] = self._conditions(results)
        ranked = results.best_scores()
        if ranked:
            normalised = ranked if results.is_normalised else None
            tables["standings.csv"] = agents_table.standings(ranked, normalised)
        for name, table in tables.items():
            labelled = table.assign(label=prefix + table["label"])
            self.tables.setdefault(name, []).append(labelled)
        self._add_sections(results, best, tables)

    def _add_sections(
        self,
        results: sweep_results.Results,
        best: pd.DataFrame,
        tables: Mapping[str, pd.DataFrame],
    ) -> None:
        tasks = results.tasks
        what = tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"
        figures = []
        if len(best):
            png = sweep_figures.conditions(results, best)
            figures.append(self._figure(f"curves_{results.suite}", png, _describe(results)))
        note = (
            f"Final scores: mean of a member's last {sweep_results.LAST_EPISODES} training "
            "episodes of each task, then the median over tasks. Mean, interval and range over "
            "seeds."
        )
        self._section(f"{results.suite}, {what}", figures, tables["conditions.csv"], note)
        if "standings.csv" in tables:
            note = (
                f"Over {len(tasks)} tasks, by the final scores of each seed's best member, mean "
                "over seeds. Rank 1 is the best of a task. A difference of 400 Elo means odds of "
                "10 to 1 for the higher score on a task. No Elo: some labels win every task "
                "against all others."
            )
            self._section("Standings", [], tables["standings.csv"], note)
        self._add_diagnostics(results)
        for label in dict.fromkeys(sweep.label for sweep in results.sweeps):
            self._section(label, self._member_figures(results, label), None, "")
        note = "Hyper-parameters are those at the start; PBT changes them during the run."
        heading = f"Members on {results.suite}, best first"
        self._section(heading, [], tables["scores.csv"], note)

    def _add_diagnostics(self, results: sweep_results.Results) -> None:
        parts = [
            diagnostics.curves(
                [m.workdir for s in results.sweeps if s.label == label for m in s.members],
                results.bucket,
            ).assign(label=label)
            for label in dict.fromkeys(sweep.label for sweep in results.sweeps)
        ]
        table = pd.concat(parts, ignore_index=True)
        if len(table):
            caption = "Means over members and seeds of TensorBoard's metrics."
            png = sweep_figures.diagnostics(table)
            figure = self._figure(f"replay_{results.suite}", png, caption)
            self._section("Shared replay", [figure], None, "")

    def _member_figures(self, results: sweep_results.Results, label: str) -> list[str]:
        figures = []
        members = results.members()
        for sweep in (sweep for sweep in results.sweeps if sweep.label == label):
            curve = results.curve.query("label == @label and seed == @sweep.seed").dropna()
            if len(curve):
                chosen = members.query("label == @label and seed == @sweep.seed")
                png = sweep_figures.members(results, curve, chosen)
                caption = f"Seed {sweep.seed}: all members, best first in the legend."
                figures.append(self._figure(f"members_{label}_{sweep.seed}", png, caption))
            if decisions := _read_lineage(sweep):
                last = max((member.env_frames for member in sweep.members), default=0)
                png = sweep_figures.population(decisions, last)
                caption = (
                    f"Seed {sweep.seed}, {', '.join(sweep.tasks)}: arrows lead from a member to "
                    "its copy."
                )
                figures.append(self._figure(f"lineage_{label}_{sweep.seed}", png, caption))
        return figures

    def _figure(self, name: str, png: bytes, caption: str) -> str:
        """Writes a figure to a file of its own; returns its HTML."""
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60]
        file = plain if plain not in self._names else f"{plain}{len(self._names)}"
        self._names.add(file)
        (self._output / f"{file}.png").write_bytes(png)
        data, caption = base64.b64encode(png).decode(), html.escape(caption)
        return (
            f'<figure><img src="data:image/png;base64,{data}" alt="{caption}">'
            f"<figcaption>{caption}</figcaption></figure>\n"
        )

    def _section(
        self, heading: str, figures: Sequence[str], table: pd.DataFrame | None, note: str
    ) -> None:
        parts = [f"<h2>{html.escape(heading)}</h2>\n", *figures]
        if table is not None:
            text = table.to_html(index=False, na_rep="–", float_format="{:.4g}".format, border=0)
            parts.append(f'<div class="table">{text}</div>\n')
        if note:
            parts.append(f'<p class="note">{html.escape(note)}</p>\n')
        self.sections.append(f"<section>\n{''.join(parts)}</section>\n")

    @staticmethod
    def _scores(results: sweep_results.Results) -> pd.DataFrame:
        """Returns a row for each member, best first, with hyper-parameters and diagnostics."""
        table = results.members()
        runs: dict[tuple, list[pathlib.Path]] = {}
        for sweep in results.sweeps:
            for member in sweep.members:
                key = (sweep.label, sweep.seed, member.name)
                runs.setdefault(key, []).append(member.workdir)
        keys = table[["label", "seed", "member"]].itertuples(index=False, name=None)
        measures = pd.DataFrame([diagnostics.measures(runs[key]) for key in keys])
        return pd.concat([table.reset_index(drop=True), measures], axis="columns")

    @staticmethod
    def _conditions(results: sweep_results.Results) -> pd.DataFrame:
        """Returns a row for each label and measure: the summary over seeds."""
        table = results.conditions().melt(["label", "seed"], var_name="measure")
        if table.empty:
            return pd.DataFrame(columns=["label", "measure", *curves.SUMMARY])
        return curves.summarise(table, ("label", "measure"))


def _describe(results: sweep_results.Results) -> str:
    median = ", median over tasks" if len(results.tasks) > 1 else ""
    return (
        f"Training episodes ({results.measure}), {results.bucket:,} env frames a point{median}, "
        "best member of the sweep at each point; mean over seeds, shaded from the worst to the "
        "best seed."
    )


def _read_lineage(sweep: sweep_results.Sweep) -> list[lineage.Record]:
    try:
        return lineage.read(sweep.workdir / lineage.FILE)
    except ValueError as error:
        logging.warning("%s", error)
        return []
