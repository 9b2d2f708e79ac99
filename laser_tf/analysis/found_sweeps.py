"""Sweeps as they lie on disk: agents with their hyper-parameters and episodes.

A sweep is a folder with a `sweep.json`; each of its agents is a run's folder inside.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from laser_tf import errors
from laser_tf.environments import suites
from laser_tf.monitoring import episode_log
from laser_tf.sweeps import sweep_config
from laser_tf.workdir import identity, run_directory

# What repetitions, and sweeps of other tasks, differ in.
_OF_EACH = ("environment.task", "run.seed", "sweep.label", "sweep.replica")


class Agent(NamedTuple):
    """One run of a sweep."""

    name: str
    folder: pathlib.Path
    hyperparameters: dict[str, Any]  # `section.key` -> value, at the run's start
    own_tasks: tuple[str, ...]  # given to it as a hyper-parameter; (): it plays its sweep's
    episodes: dict[str, episode_log.Episodes]  # by task; empty before the first

    @property
    def env_frames(self) -> int:
        """When its last episode was reported; 0 before the first."""
        return max((int(log.env_frames[-1]) for log in self.episodes.values()), default=0)


class Sweep(NamedTuple):
    """Agents that differ in their hyper-parameters."""

    folder: pathlib.Path
    label: str  # the condition that it is a repetition of
    replica: int  # which repetition
    suite: str
    tasks: tuple[str, ...]  # as configured; "all" stands for a whole suite
    env_frames: int  # each agent's budget
    is_finished: bool  # whether all agents have come to it
    agents: tuple[Agent, ...]
    settings: dict[str, Any]  # `section.key` -> value, without what every sweep has of its own


def find(folder: pathlib.Path) -> tuple[list[Sweep], list[str]]:
    """All sweeps in a folder, at any depth, the folder itself included.

    Returns:
      The sweeps in the order of their paths, and a line for each that cannot be read.

    Raises:
      WorkdirError: without any.
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
        raise run_directory.WorkdirError(
            f"{folder} holds no sweep that can be read; {notes[0]}"
            if notes
            else f"{folder} holds no sweep: there is no {run_directory.SWEEP_FILE} in it, at any "
            "depth. Name a folder of launch.sweep's"
        )
    return sweeps, notes


def _names(suite: str, tasks: str) -> tuple[str, ...]:
    """The names in a configuration's `task`, as the suite calls them where it can be asked."""
    return tuple(_name(suite, name.strip()) for name in tasks.split(",") if name)


def _name(suite: str, task: str) -> str:
    if task == "all":
        return task
    try:
        return suites.config_class(suite)(suite=suite, task=task).tasks[0]
    except (ImportError, ValueError):  # what is not installed, or not known, here
        return task


def _read_agent(folder: pathlib.Path, suite: str, hyperparameters: Mapping[str, Any]) -> Agent:
    episodes = episode_log.read(folder)
    episode_log.check_order(folder, episodes)
    own_tasks = _names(suite, hyperparameters.get("environment.task", ""))
    return Agent(folder.name, folder, dict(hyperparameters), own_tasks, episodes)


def _read(path: pathlib.Path) -> Sweep:
    content = json.loads(path.read_text(encoding="utf-8"))
    given = content["config"]
    config = identity.with_defaults(given, sweep_config.defaults(given))
    suite = str(config["environment"]["suite"])
    agents = [
        _read_agent(path.parent / name, suite, values)
        for name, values in sorted(content["agents"].items())
    ]
    return Sweep(
        folder=path.parent,
        label=str(content["label"]),
        replica=int(content["replica"]),
        suite=suite,
        tasks=_names(suite, config["environment"]["task"]),
        env_frames=int(config["run"]["env_frames"]),
        is_finished=(path.parent / run_directory.FINISHED).exists(),
        agents=tuple(agents),
        settings={
            key: value
            for key, value in identity.identifying_values(config).items()
            if key not in _OF_EACH
        },
    )
