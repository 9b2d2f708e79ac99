"""Results of sweeps by the papers' protocol (LASER, appendix A.3), as tables.

Sweeps with the same label and seed but different tasks count as one. Episode returns are averaged
in buckets of env frames, followed by the median over tasks, the best member at each point, and the
mean over seeds. Final scores are those of the evaluations after training if all members have one,
else those of the last training episodes.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from laser_tf.plotting import sweep_tables, tables
from laser_tf.scores import aggregates, reference
from laser_tf.workdir import run_directory

_KEYS = sweep_tables.KEYS


class Results(NamedTuple):
    """Tables of one suite.

    curve: label, seed, member, env_frames, score: median over tasks; NaN if one is missing.
    scores: label, seed, member, task, score, episodes: mean of the evaluation or last episodes.
    """

    suite: str
    tasks: tuple[str, ...]
    is_normalised: bool
    is_evaluated: bool  # whether scores are those of evaluations
    bucket: int  # env frames
    sweeps: tuple[sweep_tables.Sweep, ...]
    curve: pd.DataFrame
    scores: pd.DataFrame

    @property
    def measure(self) -> str:
        """Name of a score, for the label of an axis."""
        if not self.is_normalised:
            return "raw return"
        is_human = reference.kind(self.suite) == reference.HUMAN
        return "human-normalised score" if is_human else "score over single-task LASER's"

    def members(self) -> pd.DataFrame:
        """Returns label, seed, member, score, episodes, and hyper-parameters; best first."""
        scores = self.scores.groupby(_KEYS).agg(
            score=("score", lambda scores: scores.median(skipna=False)),
            episodes=("episodes", "min"),
        )
        hyperparameters = pd.DataFrame(
            [
                {"label": sweep.label, "seed": sweep.seed, "member": name} | values
                for sweep in self.sweeps
                for name, values in sweep.members.items()
            ]
        ).drop_duplicates(_KEYS)
        table = hyperparameters[_KEYS].merge(scores, "left", on=_KEYS).fillna({"episodes": 0})
        table = table.merge(hyperparameters, "left", on=_KEYS)
        return table.sort_values("score", ascending=False, kind="stable", ignore_index=True)

    def best_curves(self) -> pd.DataFrame:
        """Returns label, seed, env_frames, score: the best member at each point."""
        by = ["label", "seed", "env_frames"]
        return self.curve.groupby(by)["score"].max().dropna().reset_index()

    def conditions(self) -> pd.DataFrame:
        """Returns for each label and seed the best and median member and those below random."""
        scores = self.members().dropna(subset="score").groupby(["label", "seed"])["score"]
        table = scores.agg(best_member="max", median_member="median")
        if self.is_normalised:
            table["at_or_below_random"] = scores.agg(lambda score: (score <= 0).sum())
        return table.reset_index()

    def best_scores(self) -> pd.DataFrame:
        """Returns the score [label, task] of each seed's best member, mean over seeds.

        A label without all tasks in a seed is left out; without two labels and two tasks, empty.
        """
        best = self.members().drop_duplicates(["label", "seed"])[_KEYS]
        scores = best.merge(self.scores, "left", on=_KEYS)
        seeds = scores.pivot(index=["label", "seed"], columns="task", values="score")
        seeds = seeds.reindex(columns=list(self.tasks))
        table = seeds.groupby("label").agg(lambda task: task.mean(skipna=False)).dropna()
        return table if min(table.shape) >= 2 else table.iloc[:0]


def summarise(
    found: Sequence[sweep_tables.Sweep], bucket: int = 0
) -> tuple[list[Results], list[str]]:
    """Measures sweeps of any suites and labels, running or finished.

    `bucket` is the env frames averaged into a point; 0: see `aggregates.choose_bucket`.

    Returns:
      The results of each suite, and a line for everything that is missing.
    """
    notes: list[str] = []
    kept: dict[tuple, sweep_tables.Sweep] = {}
    for sweep in found:
        keys = [(sweep.suite, sweep.label, sweep.seed, task) for task in sweep.tasks]
        if taken := [key for key in keys if key in kept]:
            notes.append(
                f"{sweep.workdir} is left out: {kept[taken[0]].workdir} has its label "
                f"{sweep.label!r}, seed {sweep.seed} and task {taken[0][-1]}, too"
            )
        else:
            kept |= dict.fromkeys(keys, sweep)
    sweeps = {sweep.workdir: sweep for sweep in kept.values()}.values()
    ordered = sorted(sweeps, key=lambda sweep: (sweep.suite, sweep.label, sweep.seed))
    results = [
        _summarise_suite(suite, tuple(parts), bucket, notes)
        for suite, parts in itertools.groupby(ordered, lambda sweep: sweep.suite)
    ]
    return results, notes


def _summarise_suite(
    suite: str, sweeps: tuple[sweep_tables.Sweep, ...], bucket: int, notes: list[str]
) -> Results:
    # Episodes reported after the last update belong to the last bucket.
    parts = [
        sweep.episodes.assign(
            label=sweep.label,
            seed=sweep.seed,
            env_frames=sweep.episodes["env_frames"].clip(upper=sweep.env_frames - 1),
        )
        for sweep in sweeps
    ]
    episodes = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    tasks = sorted(episodes["task"].unique())
    unknown = [task for task in tasks if task not in reference.reference_scores(suite)]
    if unknown and len(unknown) < len(tasks):
        notes.append(f"{suite}: raw returns, since there is no reference score of {unknown[0]}")
    episodes["score"] = episodes["return"]
    if not unknown:
        episodes["score"] = _normalised(suite, episodes)
    chosen = aggregates.choose_bucket(suite, max(sweep.env_frames for sweep in sweeps))
    bucket, group = (bucket, 1) if bucket else chosen
    curves = [pd.DataFrame(columns=[*_KEYS, "env_frames", "score"])]
    scores = [pd.DataFrame(columns=[*_KEYS, "task", "score", "episodes"])]
    for (label, seed), part in episodes.groupby(["label", "seed"]):
        names = {"label": label, "seed": seed}
        own = [sweep.tasks for sweep in sweeps if (sweep.label, sweep.seed) == (label, seed)]
        needed = sorted(set().union(*own))
        curves.append(aggregates.sweep_curves(part, needed, bucket, group).assign(**names))
        scores.append(_final_scores(part, needed).assign(**names))
    trained = pd.concat(scores[1:] or scores, ignore_index=True)
    evaluated = _evaluated_scores(trained, sweeps, suite, not unknown, notes)
    results = Results(
        suite=suite,
        tasks=tuple(tasks),
        is_normalised=not unknown,
        is_evaluated=evaluated is not None,
        bucket=bucket * group,
        sweeps=sweeps,
        curve=pd.concat(curves[1:] or curves, ignore_index=True),
        scores=trained if evaluated is None else evaluated,
    )
    notes += _missing(results)
    return results


def _normalised(suite: str, table: pd.DataFrame) -> pd.Series:
    by_task = table.groupby("task")["return"]
    return by_task.transform(lambda returns: reference.normalised(suite, returns.name, returns))


def _final_scores(episodes: pd.DataFrame, tasks: Sequence[str]) -> pd.DataFrame:
    """Returns score and episodes of each pair of member and task; NaN and 0 without episodes."""
    last = episodes.groupby(["member", "task"]).tail(tables.EPISODES)
    scores = last.groupby(["member", "task"])["score"].agg(score="mean", episodes="count")
    pairs = pd.MultiIndex.from_product([scores.index.levels[0], tasks], names=["member", "task"])
    return scores.reindex(pairs).fillna({"episodes": 0}).reset_index()


def _evaluated_scores(
    trained: pd.DataFrame,
    sweeps: Sequence[sweep_tables.Sweep],
    suite: str,
    is_normalised: bool,
    notes: list[str],
) -> pd.DataFrame | None:
    """Returns the scores of the evaluations; None unless all pairs of `trained` have one."""
    parts = [sweep.evaluations.assign(label=sweep.label, seed=sweep.seed) for sweep in sweeps]
    found = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    if found.empty:
        return None
    pairs = trained[[*_KEYS, "task"]].merge(found, "left")
    scored = trained["score"].notna()
    if missing := int(pairs.loc[scored, "return"].isna().sum()):
        notes.append(
            f"{suite}: scores are those of training, since {missing} of {scored.sum()} pairs of "
            "member and task have no evaluation yet"
        )
        return None
    pairs["score"] = _normalised(suite, pairs) if is_normalised else pairs["return"]
    return pairs.drop(columns="return").fillna({"episodes": 0})


def _missing(results: Results) -> list[str]:
    """Returns a line for everything that the sweeps of a suite lack."""
    notes = []
    for (label, seed), parts in itertools.groupby(results.sweeps, lambda s: (s.label, s.seed)):
        where, sweeps = f"{label!r}, seed {seed}", list(parts)
        known = {task for sweep in sweeps for task in sweep.episodes["task"]}
        if absent := [task for task in results.tasks if task not in known]:
            notes.append(f"{where}: no episodes yet of {_shorten(absent)}")
        for sweep in sweeps:
            counts = sweep.episodes.groupby("member")["task"].nunique()
            if late := [name for name in sweep.members if counts.get(name, 0) < counts.max()]:
                notes.append(f"{sweep.workdir}: no episodes yet of some task of {_shorten(late)}")
            slowest = min(sweep.progress().values(), default=0)
            is_finished = (sweep.workdir / run_directory.FINISHED).exists()
            if not is_finished and slowest < sweep.env_frames - results.bucket:
                notes.append(
                    f"{where}: the slowest member is at {slowest:,} of {sweep.env_frames:,} frames"
                )
    for _, parts in itertools.groupby(results.sweeps, lambda sweep: sweep.label):
        first, *others = parts
        differing = [
            f"{first.label!r}: {key} is {value!r} in {first.workdir}, but {other.settings[key]!r} "
            f"in {other.workdir}, which are taken together"
            for other in others
            for key, value in sorted(first.settings.items())
            if other.settings.get(key, value) != value
        ]
        notes += differing[:1]
    return notes


def _shorten(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown
