"""Results of sweeps by the papers' protocol (LASER, appendix A.3), as tables.

A sweep is a directory with `sweep.json`; each member is a run directory inside. Sweeps with the
same label and seed but different tasks count as one. Episode returns are averaged in buckets of env
frames, followed by the median over tasks, the best member at each point, and the mean over seeds.
"""

import collections
import itertools
import json
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from laser_tf import errors
from laser_tf.environments import suites
from laser_tf.monitoring import episode_log
from laser_tf.scores import aggregates, reference
from laser_tf.sweeps import sweep_config
from laser_tf.workdir import identity, run_directory

LAST_EPISODES = 100  # of a task, in a final score

# Keys in which seeds, and sweeps of other tasks, differ.
_INDIVIDUAL_KEYS = ("environment.task", "run.seed", "sweep.label", "sweep.seed_index")


class Member(NamedTuple):
    """One run of a sweep."""

    name: str
    workdir: pathlib.Path
    hyperparameters: dict[str, Any]  # `section.key` -> value at the start of the run
    own_tasks: tuple[str, ...]  # given as a hyper-parameter; (): the tasks of the sweep
    episodes: dict[str, episode_log.Episodes]  # by task; empty before the first

    @property
    def env_frames(self) -> int:
        """Env frames at its last episode; 0 before the first."""
        return max((int(log.env_frames[-1]) for log in self.episodes.values()), default=0)


class Sweep(NamedTuple):
    """Members that differ in their hyper-parameters."""

    workdir: pathlib.Path
    label: str
    seed: int
    suite: str
    tasks: tuple[str, ...]  # as configured; "all" is a whole suite
    env_frames: int  # budget of each member
    is_finished: bool
    members: tuple[Member, ...]
    settings: dict[str, Any]  # `section.key` -> value, without `_INDIVIDUAL_KEYS`


class Results(NamedTuple):
    """Tables of one suite.

    curve: label, seed, member, env_frames, score: median over tasks; NaN if one is missing.
    scores: label, seed, member, task, score, episodes: mean of the last episodes.
    """

    suite: str
    tasks: tuple[str, ...]
    is_normalised: bool
    bucket: int  # env frames
    sweeps: tuple[Sweep, ...]
    curve: pd.DataFrame
    scores: pd.DataFrame

    @property
    def measure(self) -> str:
        """Describes a score."""
        if not self.is_normalised:
            return "raw return"
        is_human = reference.kind(self.suite) == reference.HUMAN
        return "human-normalised score" if is_human else "score over single-task LASER's"

    def members(self) -> pd.DataFrame:
        """Returns label, seed, member, score, episodes, and hyper-parameters; best first."""
        keys = ["label", "seed", "member"]
        grouped = self.scores.groupby(keys, sort=False)
        table = grouped.agg(
            score=("score", lambda scores: scores.median(skipna=False)),
            episodes=("episodes", "min"),
        ).reset_index()
        hyperparameters = pd.DataFrame(
            [
                {"label": sweep.label, "seed": sweep.seed, "member": member.name}
                | member.hyperparameters
                for sweep in self.sweeps
                for member in sweep.members
            ]
        ).drop_duplicates(keys)
        table = hyperparameters[keys].merge(table, "left", on=keys)
        table = table.merge(hyperparameters, "left", on=keys)
        return table.sort_values("score", ascending=False, kind="stable")

    def best_curves(self) -> pd.DataFrame:
        """Returns label, seed, env_frames, score: the best member at each point."""
        keys = ["label", "seed", "env_frames"]
        return self.curve.groupby(keys, sort=False)["score"].max().reset_index()

    def conditions(self) -> pd.DataFrame:
        """Returns for each label and seed the best and median member and those below random."""
        members = self.members().dropna(subset="score")
        grouped = members.groupby(["label", "seed"])["score"]
        table = grouped.agg(best_member="max", median_member="median").reset_index()
        if self.is_normalised:
            table["at_or_below_random"] = grouped.agg(lambda s: (s <= 0).sum()).to_numpy()
        return table

    def best_scores(self) -> dict[str, dict[str, float]]:
        """Returns label -> task -> score of each seed's best member, mean over seeds.

        A label without all tasks in a seed is left out; without two labels and two tasks, empty.
        """
        members = self.members().dropna(subset="score")
        best = members.drop_duplicates(["label", "seed"])[["label", "seed", "member"]]
        scores = best.merge(self.scores, on=["label", "seed", "member"])
        table = scores.groupby(["label", "task"])["score"].mean().unstack()
        counts = scores.groupby("label")["seed"].nunique()
        seeds = collections.Counter(label for label, _ in {(s.label, s.seed) for s in self.sweeps})
        complete = [label for label in table.index if counts[label] == seeds[label]]
        table = table.loc[complete].dropna()
        if set(table.columns) != set(self.tasks) or min(table.shape) < 2:
            return {}
        return table.to_dict("index")


def find(folder: pathlib.Path) -> tuple[list[Sweep], list[str]]:
    """Finds all sweeps in a directory, at any depth.

    Returns:
      The sweeps in the order of their paths, and a line for each that cannot be read.

    Raises:
      WorkdirError: If there is none.
    """
    sweeps, notes = [], []
    for path in sorted(folder.rglob(run_directory.SWEEP_FILE)):
        try:
            sweeps.append(_read(path))
        except errors.UserError as error:
            notes.append(f"{path} is left out: {error}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            notes.append(f"{path} is left out: {type(error).__name__}: {error}")
    if not sweeps:
        reason = (
            notes[0] if notes else f"there is no {run_directory.SWEEP_FILE} in it, at any depth"
        )
        raise run_directory.WorkdirError(
            f"{folder} holds no sweep that can be read; {reason}. Name a directory of launch.sweep."
        )
    return sweeps, notes


def _read(path: pathlib.Path) -> Sweep:
    content = json.loads(path.read_text(encoding="utf-8"))
    config = identity.with_defaults(content["config"], sweep_config.defaults(content["config"]))
    suite = str(config["environment"]["suite"])
    settings = identity.identifying_values(config)
    return Sweep(
        workdir=path.parent,
        label=str(content["label"]),
        seed=int(content["seed_index"]),
        suite=suite,
        tasks=_task_names(suite, config["environment"]["task"]),
        env_frames=int(config["run"]["env_frames"]),
        is_finished=(path.parent / run_directory.FINISHED).exists(),
        members=tuple(
            _read_member(path.parent / name, suite, values)
            for name, values in sorted(content["members"].items())
        ),
        settings={key: settings[key] for key in settings.keys() - set(_INDIVIDUAL_KEYS)},
    )


def _read_member(folder: pathlib.Path, suite: str, hyperparameters: dict[str, Any]) -> Member:
    episodes = episode_log.read(folder)
    episode_log.check_order(folder, episodes)
    own_tasks = _task_names(suite, hyperparameters.get("environment.task", ""))
    return Member(folder.name, folder, dict(hyperparameters), own_tasks, episodes)


def _task_names(suite: str, tasks: str) -> tuple[str, ...]:
    """Returns the names in a configuration's `task`, as the suite spells them if it can tell."""

    def name(task: str) -> str:
        if task == "all":
            return task
        try:
            return suites.config_class(suite)(suite=suite, task=task).tasks[0]
        except (ImportError, ValueError):  # not installed, or not known
            return task

    return tuple(name(task.strip()) for task in tasks.split(",") if task)


def summarise(found: Sequence[Sweep], bucket: int = 0) -> tuple[list[Results], list[str]]:
    """Measures sweeps of any suites and labels, running or finished.

    Args:
      found: Sweeps.
      bucket: Env frames averaged into a point; 0: `aggregates.choose_bucket`.

    Returns:
      The results of each suite, and a line for each thing that is missing.
    """
    notes = []
    kept = _without_duplicates(found, notes)
    results = []
    for suite in sorted({sweep.suite for sweep in kept}):
        sweeps = sorted(
            (sweep for sweep in kept if sweep.suite == suite), key=lambda s: (s.label, s.seed)
        )
        results.append(_summarise_suite(suite, sweeps, bucket, notes))
    return results, notes


def _without_duplicates(found: Sequence[Sweep], notes: list[str]) -> list[Sweep]:
    kept: dict[tuple, Sweep] = {}
    for sweep in found:
        keys = [(sweep.suite, sweep.label, sweep.seed, task) for task in sweep.tasks]
        taken = [key for key in keys if key in kept]
        if taken:
            notes.append(
                f"{sweep.workdir} is left out: {kept[taken[0]].workdir} has its label "
                f"{sweep.label!r}, seed {sweep.seed} and task {taken[0][-1]}, too"
            )
        else:
            kept |= dict.fromkeys(keys, sweep)
    return list({sweep.workdir: sweep for sweep in kept.values()}.values())


def _summarise_suite(suite: str, sweeps: list[Sweep], bucket: int, notes: list[str]) -> Results:
    tasks = {task for sweep in sweeps for m in sweep.members for task in m.episodes}
    unknown = sorted(task for task in tasks if reference.normalised(suite, task, 0) is None)
    if unknown and len(unknown) < len(tasks):
        notes.append(f"{suite}: raw returns, since there is no reference score of {unknown[0]}")
    chosen, group = aggregates.choose_bucket(suite, max(s.env_frames for s in sweeps))
    bucket, group = (bucket, 1) if bucket else (chosen, group)
    none = pd.DataFrame()
    empty = Results(
        suite, tuple(sorted(tasks)), not unknown, bucket * group, tuple(sweeps), none, none
    )
    curves, scores = [], []
    for (label, seed), parts in itertools.groupby(sweeps, lambda s: (s.label, s.seed)):
        one = list(parts)
        notes += _missing(empty, one)
        curve, score = _measure_seed(empty, one, bucket, group, notes)
        curves.append(curve.assign(label=label, seed=seed))
        scores.append(score.assign(label=label, seed=seed))
    for _, parts in itertools.groupby(sweeps, lambda s: s.label):
        notes += _different_settings(list(parts))
    return empty._replace(curve=pd.concat(curves), scores=pd.concat(scores))


def _measure_seed(
    results: Results, sweeps: list[Sweep], bucket: int, group: int, notes: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the curve and the scores of all members of one label and seed."""
    runs: dict[str, list[tuple[Sweep, Member]]] = {}
    for sweep in sweeps:
        for member in sweep.members:
            runs.setdefault(member.name, []).append((sweep, member))
    played = sorted({task for s in sweeps for m in s.members for task in m.episodes})
    tasks = {name: _tasks_of(of_member, played) for name, of_member in runs.items()}
    is_comparable = len({tuple(of_member) for of_member in tasks.values()}) <= 1
    if not is_comparable:
        notes.append(
            f"{sweeps[0].label!r}, seed {sweeps[0].seed}: members have different tasks, so that "
            "their scores do not compare, and no curve has the best of them"
        )
    curves, scores = [pd.DataFrame(columns=["member", "env_frames", "score"])], []
    for name, of_member in runs.items():
        means = {task: np.zeros(0) for task in tasks[name]}
        returns = {}
        for sweep, member in of_member:
            for task, episodes in member.episodes.items():
                # Episodes reported after the last update belong to the last bucket.
                steps = np.minimum(episodes.env_frames, sweep.env_frames - 1)
                values = aggregates.bucket_means(steps, episodes.returns, bucket)
                means[task] = np.array([_score(results, task, value) for value in values])
                returns[task] = episodes.returns[-LAST_EPISODES:]
        for task in tasks[name]:
            last = returns.get(task, np.zeros(0))
            score = _score(results, task, float(last.mean())) if len(last) else np.nan
            scores.append((name, task, score, len(last)))
        if means and is_comparable:
            curve = aggregates.sweep_curve([means], group)
            frames = (np.arange(len(curve)) + 0.5) * bucket * group
            curves.append(pd.DataFrame({"member": name, "env_frames": frames, "score": curve}))
    columns = ["member", "task", "score", "episodes"]
    return pd.concat(curves[1:] or curves), pd.DataFrame(scores, columns=columns)


def _tasks_of(of_member: Sequence[tuple[Sweep, Member]], played: Sequence[str]) -> list[str]:
    """Returns the tasks given to a member as a hyper-parameter, or all tasks."""
    own = {task for _, member in of_member for task in member.own_tasks}
    return [task for task in played if task in own or not own]


def _score(results: Results, task: str, episode_return: float) -> float:
    if not results.is_normalised:
        return episode_return
    return reference.normalised(results.suite, task, episode_return)


def _different_settings(sweeps: list[Sweep]) -> list[str]:
    """Returns a line for the first two sweeps of a label that are not repetitions."""
    first, *others = sweeps
    for other in others:
        for key in sorted(first.settings.keys() & other.settings.keys()):
            if first.settings[key] != other.settings[key]:
                return [
                    f"{first.label!r}: {key} is {first.settings[key]!r} in {first.workdir}, but "
                    f"{other.settings[key]!r} in {other.workdir}, which are taken together"
                ]
    return []


def _missing(results: Results, sweeps: list[Sweep]) -> list[str]:
    """Returns a line for each kind of thing that a seed lacks."""
    where, notes = f"{sweeps[0].label!r}, seed {sweeps[0].seed}", []
    played = {task for sweep in sweeps for member in sweep.members for task in member.episodes}
    if absent := [task for task in results.tasks if task not in played]:
        notes.append(f"{where}: no episodes yet of {_shortened(absent)}")
    for sweep in sweeps:
        if silent := [member.name for member in sweep.members if not member.episodes]:
            notes.append(f"{where}: no episodes yet of {_shortened(silent)} in {sweep.workdir}")
        slowest = min((member.env_frames for member in sweep.members), default=0)
        if not sweep.is_finished and slowest < sweep.env_frames - results.bucket:
            notes.append(
                f"{where}: the slowest member is at {slowest:,} of {sweep.env_frames:,} env frames"
            )
    for one, other in itertools.pairwise(sweeps):
        if [m.hyperparameters for m in one.members] != [m.hyperparameters for m in other.members]:
            notes.append(f"{where}: members differ between {one.workdir} and {other.workdir}")
            break
    return notes


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown
