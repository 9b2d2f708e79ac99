"""Sweeps as they lie on disk: agents with their hyper-parameters and episodes.

A sweep is a folder with a `sweep.json`; each of its agents is a run's folder inside.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from laser_tf import errors
from laser_tf.host import run_folder, run_identity
from laser_tf.monitoring import episode_log
from laser_tf.sweeps import sweep_config

# What repetitions, and sweeps of other tasks, differ in.
_OF_EACH = ("environment.task", "run.seed", "sweep.label", "sweep.replica")


class Agent(NamedTuple):
    """One run of a sweep."""

    name: str
    folder: pathlib.Path
    hyperparameters: dict[str, Any]  # `section.key` -> value, at the run's start
    episodes: dict[str, episode_log.Episodes]  # by task; empty before the first

    @property
    def env_frames(self) -> int:
        """When its last episode was reported; 0 before the first."""
        return max((int(log.env_frames[-1]) for log in self.episodes.values()), default=0)

    @property
    def own_tasks(self) -> tuple[str, ...]:
        """Those that it was given as a hyper-parameter; (): it plays its sweep's."""
        return _names(self.hyperparameters.get("environment.task", ""))


class Sweep(NamedTuple):
    """Agents that differ in their hyper-parameters."""

    folder: pathlib.Path
    label: str  # the condition that it is a repetition of
    replica: int  # which repetition
    suite: str
    tasks: tuple[str, ...]  # as configured; "all" stands for a whole suite
    env_frames: int  # each agent's budget
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
    for path in sorted(folder.rglob(run_folder.SWEEP)):
        try:
            sweeps.append(_read(path))
        except errors.UserError as error:
            notes.append(f"{path} is left out: {error}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            notes.append(f"{path} is left out: {type(error).__name__}: {error}")
    if not sweeps:
        reason = (
            f"; {notes[0]}" if notes else f": there is no {run_folder.SWEEP} in it, at any depth"
        )
        raise run_folder.WorkdirError(
            f"{folder} holds no sweep{reason}. Name a folder of launch.sweep's"
        )
    return sweeps, notes


def _names(tasks: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in tasks.split(",") if name)


def _read_agent(folder: pathlib.Path, hyperparameters: Mapping[str, Any]) -> Agent:
    episodes = episode_log.read(folder)
    episode_log.check_order(folder, episodes)
    return Agent(folder.name, folder, dict(hyperparameters), episodes)


def _read(path: pathlib.Path) -> Sweep:
    content = json.loads(path.read_text(encoding="utf-8"))
    given = content["config"]
    config = run_identity.completed(given, sweep_config.defaults(given))
    agents = [
        _read_agent(path.parent / name, values)
        for name, values in sorted(content["agents"].items())
    ]
    return Sweep(
        folder=path.parent,
        label=str(content["label"]),
        replica=int(content["replica"]),
        suite=str(config["environment"]["suite"]),
        tasks=_names(config["environment"]["task"]),
        env_frames=int(config["run"]["env_frames"]),
        agents=tuple(agents),
        settings={
            key: value
            for key, value in run_identity.identity(config).items()
            if key not in _OF_EACH
        },
    )
