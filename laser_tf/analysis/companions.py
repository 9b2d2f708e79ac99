"""What agents that learn come to beside companions that collapse: curves, every agent, a table.

The normal agents of a sweep are those of its lowest learning rate, the others their companions.
Returns are the game's own: what `environment.reward_offset` adds to each step is taken out.
"""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import axes as axes_module

from laser_tf.analysis import (
    figure,
    figures_sharing,
    found_sweeps,
    panels,
    seed_curves,
    sweep_diagnostics,
)
from laser_tf.monitoring import episode_log
from laser_tf.scores import aggregates
from laser_tf.workdir import run_directory

_LEARNING_RATE = "learner.learning_rate"
_KINDS = {True: "normal", False: "companion"}
_AGENT_COLUMNS = (
    "condition", "reward_offset", "replica", "agent", "kind", "learning_rate", "env_frames",
    "episodes", "mean_return", *sweep_diagnostics.MEASURES,
)  # fmt: skip
_CONDITION_COLUMNS = ("condition", "reward_offset", "kind", *seed_curves.COLUMNS)
_POINTS = 100


class _Agent(NamedTuple):
    is_normal: bool
    offset: float  # reward, of each agent step
    row: list  # of `agents.csv`, from `replica` on
    steps: np.ndarray  # int64 [E], env frames at which episodes ended
    returns: np.ndarray  # float64 [E], the game's own

    @property
    def score(self) -> float:
        return float(self.returns[-seed_curves.EPISODES :].mean())


_Replicas = Sequence[Sequence[_Agent]]  # of one condition


def write(runs: figure.Runs, output: pathlib.Path, failed_below: float) -> None:
    """Writes `sharing.png`, `agents.csv` and `conditions.csv` to a folder.

    Args:
      runs: one task's; sweeps' folders by label, one for each replica.
      output: where to write.
      failed_below: the mean return below which a replica's agents have learned nothing.

    Raises:
      UserError: if a sweep is missing, or an agent has no finished episode.
    """
    (of_task,) = runs.values()
    found = {label: [_read(folder) for folder in folders] for label, folders in of_task.items()}
    panels.write_csv(output / "agents.csv", _AGENT_COLUMNS, _agent_rows(found))
    columns = (*_CONDITION_COLUMNS, f"replicas_below_{failed_below:g}")
    panels.write_csv(output / "conditions.csv", columns, _condition_rows(found, failed_below))
    endings = {_ending(label): None for label in found}
    with panels.drawn(output / "sharing.png", len(_KINDS), len(endings)) as axes:
        for column, ending in zip(axes.T, endings, strict=True):
            for panel, kind in zip(column, _KINDS, strict=True):
                _draw(panel, found, ending, kind)


def _read(folder: pathlib.Path) -> list[_Agent]:
    (sweep, *_), _ = found_sweeps.find(folder)
    lowest = min(agent.hyperparameters[_LEARNING_RATE] for agent in sweep.agents)
    return [_read_agent(sweep.replica, agent, lowest) for agent in sweep.agents]


def _read_agent(replica: int, agent: found_sweeps.Agent, lowest: float) -> _Agent:
    episode_log.check(agent.folder, agent.episodes)
    (episodes,) = agent.episodes.values()
    offset = run_directory.read_config(agent.folder)["environment"].get("reward_offset", 0.0)
    rate = agent.hyperparameters[_LEARNING_RATE]
    returns = episodes.returns - offset * episodes.lengths
    measures = sweep_diagnostics.measures([sweep_diagnostics.read(agent.folder)])
    row = [replica, agent.name, _KINDS[rate == lowest], rate, agent.env_frames, len(returns)]
    read = _Agent(rate == lowest, offset, row, episodes.env_frames, returns)
    return read._replace(row=row + panels.cells([read.score, *measures]))


def _agent_rows(found: Mapping[str, _Replicas]) -> Iterator[list]:
    for label, replicas in found.items():
        for agents in replicas:
            for agent in agents:
                yield [_condition(label), agent.offset, *agent.row]


def _condition_rows(found: Mapping[str, _Replicas], failed_below: float) -> Iterator[list]:
    """Of each condition the normal agents, then their companions: a replica is their mean."""
    for label, replicas in found.items():
        for is_normal, kind in _KINDS.items():
            means = [
                np.mean([agent.score for agent in agents if agent.is_normal == is_normal])
                for agents in replicas
            ]
            summary = seed_curves.summarise(means)
            below = int((np.asarray(means) < failed_below).sum())
            yield [
                *(_condition(label), replicas[0][0].offset, kind),
                *(*panels.cells(summary[:5]), summary.seeds, below),
            ]


def _condition(label: str) -> str:
    """A label without what it says of the offset."""
    return label.removesuffix(_ending(label))


def _ending(label: str) -> str:
    return max(filter(label.endswith, figures_sharing.OFFSETS), key=len)


def _draw(
    panel: axes_module.Axes, found: Mapping[str, _Replicas], ending: str, is_normal: bool
) -> None:
    """Draws each condition's mean over the agents of a kind and over replicas."""
    for label, replicas in found.items():
        if _ending(label) != ending:
            continue
        end = min(agent.steps[-1] for agents in replicas for agent in agents)
        start = max(agent.steps[0] for agents in replicas for agent in agents)
        grid = np.linspace(start, max(start, end), _POINTS)
        summary = seed_curves.summarise([_curve(agents, is_normal, grid) for agents in replicas])
        seed_curves.draw(panel, grid / 1e3, summary, _condition(label))
    panel.set(
        title=f"{_KINDS[is_normal]} agents{ending or ', rewards as they are'}",
        xlabel="Thousand environment frames of each agent",
        ylabel=f"Game return, mean of {seed_curves.EPISODES}",
    )


def _curve(agents: Sequence[_Agent], is_normal: bool, grid: np.ndarray) -> np.ndarray:
    """The mean [K] of the agents of a kind, at env frames [K]."""
    means = [
        aggregates.trailing_means(agent.steps, agent.returns, grid, seed_curves.EPISODES)
        for agent in agents
        if agent.is_normal == is_normal
    ]
    return np.mean(means, axis=0)
