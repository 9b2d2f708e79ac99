"""Sweeps in a directory: their members, episodes and diagnostics, as tables.

A sweep is a directory with `sweep.json`; each member is a run directory inside.
"""

import contextlib
import json
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from laser_tf import errors
from laser_tf.environments import suites
from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.sweeps import sweep_config
from laser_tf.workdir import identity, run_directory

KEYS = ["label", "seed", "member"]
DIAGNOSTICS = {  # metric -> unit, in the order of the panels
    "replay/foreign_fraction": "",
    "trust_region/accepted_own_fraction": "",
    "trust_region/accepted_foreign_fraction": "",
    "policy/kl_own": "nats",
    "policy/kl_foreign": "nats",
    "vtrace/advantage_own": "reward",
    "vtrace/advantage_foreign": "reward",
    "replay/age_updates": "learner updates",
}

_MEASURES = {  # column of `measures` -> metric, and which value of a run
    "policy_entropy": ("policy/entropy", "last"),  # shows a collapse
    "advantage_own": ("vtrace/advantage_own", "mean"),
    "advantage_foreign": ("vtrace/advantage_foreign", "mean"),
    "accepted_foreign_fraction": ("trust_region/accepted_foreign_fraction", "mean"),
    "kl_foreign": ("policy/kl_foreign", "mean"),
}
# Keys in which seeds, and sweeps of other tasks, differ.
_INDIVIDUAL_KEYS = {"environment.task", "run.seed", "sweep.label", "sweep.seed_index"}


class Sweep(NamedTuple):
    """A sweep of members that differ in their hyper-parameters."""

    workdir: pathlib.Path
    label: str
    seed: int
    suite: str
    tasks: tuple[str, ...]  # by the suite's own names
    env_frames: int  # budget of each member
    members: dict[str, dict[str, Any]]  # name -> `section.key` -> value at the start of the run
    episodes: pd.DataFrame  # member, task, env_frames, return, length; of each task in order
    evaluations: pd.DataFrame  # member, task, return, episodes; means of evaluations after training
    settings: dict[str, Any]  # `section.key` -> value; equal for all seeds and tasks of a label

    def progress(self) -> dict[str, int]:
        """Returns the env frames at each member's last episode; 0 before the first."""
        last = self.episodes.groupby("member")["env_frames"].max().to_dict()
        return {name: last.get(name, 0) for name in self.members}


def find(folder: pathlib.Path) -> tuple[list[Sweep], list[str]]:
    """Finds all sweeps in a directory, at any depth.

    Returns:
      The sweeps in the order of their paths, and a line for each that cannot be read.

    Raises:
      WorkdirError: If no sweep can be read.
    """
    sweeps, notes = [], []
    for path in sorted(folder.rglob(run_directory.SWEEP_FILE)):
        try:
            sweeps.append(_read(path))
        except errors.UserError as error:
            notes.append(f"{path} is left out: {error}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            notes.append(f"{path} is left out: {type(error).__name__}: {error}")
    if not sweeps:
        reason = notes[0] if notes else f"{run_directory.SWEEP_FILE} is missing at any depth"
        raise run_directory.WorkdirError(
            f"{folder} holds no sweep that can be read; {reason}. Name a directory of launch.sweep."
        )
    return sweeps, notes


def _read(path: pathlib.Path) -> Sweep:
    content = json.loads(path.read_text(encoding="utf-8"))
    config = identity.with_defaults(content["config"], sweep_config.defaults(content["config"]))
    suite = str(config["environment"]["suite"])
    settings = identity.identifying_values(config)
    members = {name: dict(values) for name, values in sorted(content["members"].items())}
    if not members:
        raise errors.UserError("members must hold at least one member, got none.")
    return Sweep(
        workdir=path.parent,
        label=str(content["label"]),
        seed=int(content["seed_index"]),
        suite=suite,
        tasks=_task_names(suite, config["environment"]["task"]),
        env_frames=int(config["run"]["env_frames"]),
        members=members,
        episodes=_read_episodes(path.parent, members),
        evaluations=_read_evaluations(path.parent, members, int(config["run"]["env_frames"])),
        settings={key: settings[key] for key in settings.keys() - _INDIVIDUAL_KEYS},
    )


def _read_episodes(workdir: pathlib.Path, members: Iterable[str]) -> pd.DataFrame:
    columns = ["env_frames", "return", "length"]
    parts = [pd.DataFrame(columns=["member", "task", *columns])]
    for name in members:
        log = episode_log.read(workdir / name)
        episode_log.check_order(workdir / name, log)
        for task, episodes in log.items():
            values = dict(zip(columns, episodes, strict=True))
            parts.append(pd.DataFrame({"member": name, "task": task, **values}))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _read_evaluations(
    workdir: pathlib.Path, members: Iterable[str], env_frames: int
) -> pd.DataFrame:
    rows = [
        (name, task, float(np.mean(of_task["returns"])), len(of_task["returns"]))
        for name in members
        if (summary := evaluation_files.standard_evaluation(workdir / name, env_frames))
        for task, of_task in summary["tasks"].items()
    ]
    return pd.DataFrame(rows, columns=["member", "task", "return", "episodes"])


def _task_names(suite: str, tasks: str) -> tuple[str, ...]:
    """Returns the suite's own names of tasks; the given names if the suite does not know them.

    Plots of a sweep import no code that its files name.
    """
    if suite in suites.SUITES:
        with contextlib.suppress(ImportError, ValueError):
            return tuple(suites.config_class(suite)(suite=suite, task=tasks).tasks)
    return tuple(task.strip() for task in tasks.split(","))


def read_diagnostics(sweeps: Iterable[Sweep]) -> pd.DataFrame:
    """Returns the finite diagnostics of shared replay that TensorBoard's files hold.

    The columns are `KEYS`, run (its directory), metric, env_frames and value.
    """
    rows: list[tuple] = []
    for sweep in sweeps:
        for member in sweep.members:
            run = sweep.workdir / member
            found = tensorboard.read_several(run / "tensorboard", ("policy/entropy", *DIAGNOSTICS))
            for metric, points in found.items():
                names = (sweep.label, sweep.seed, member, str(run), metric)
                rows += [(*names, *point) for point in zip(*points, strict=True)]
    table = pd.DataFrame(rows, columns=[*KEYS, "run", "metric", "env_frames", "value"])
    return table[np.isfinite(table["value"].astype(float))]


def measures(diagnostics: pd.DataFrame) -> pd.DataFrame:
    """Returns `_MEASURES` of each member, as means over its runs; the index is `KEYS`."""
    runs = diagnostics.groupby([*KEYS, "run", "metric"])["value"].agg(["last", "mean"])
    members = runs.groupby([*KEYS, "metric"]).mean().unstack()
    columns = {
        name: members.get((value, metric), pd.Series(np.nan, members.index))
        for name, (metric, value) in _MEASURES.items()
    }
    return pd.DataFrame(columns, index=members.index)
