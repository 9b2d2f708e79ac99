"""What sweeps reached, by the papers' protocol (LASER, appendix A.3): curves and final scores."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from laser_tf.analysis import found_sweeps
from laser_tf.scores import aggregates, reference

LAST_EPISODES = 100  # of a task, in a final score


class Protocol(NamedTuple):
    """How the scores of one suite are measured; the same for all its sweeps, to compare them."""

    suite: str
    tasks: tuple[str, ...]  # that any agent has played
    is_normalised: bool  # normalised scores, else raw returns
    bucket: int  # env frames
    group: int  # buckets averaged into a curve's point

    def score(self, task: str, episode_return: float) -> float:
        """Of a task's mean return."""
        if not self.is_normalised:
            return episode_return
        return reference.normalised(self.suite, task, episode_return)

    @property
    def measure(self) -> str:
        """What a score is, in words."""
        if not self.is_normalised:
            return "raw return"
        if reference.kind(self.suite) == reference.HUMAN:
            return "human-normalised score"
        return "score over single-task LASER's"

    def env_frames(self, points: int) -> np.ndarray:
        """Float64 [points], the middle of each point of a curve."""
        return (np.arange(points) + 0.5) * self.bucket * self.group


class Agent(NamedTuple):
    """One set of hyper-parameters, on all its tasks."""

    name: str
    runs: tuple[found_sweeps.Agent, ...]  # one for each sweep: several where each plays one task
    curve: np.ndarray  # float64 [K], median over tasks of bucket means; NaN where one is missing
    task_scores: Mapping[str, float]  # the last episodes' mean; NaN where there are none
    episodes: int  # behind the score, of the task with fewest

    @property
    def score(self) -> float:
        """Median over tasks; NaN where one has none."""
        return float(np.median(list(self.task_scores.values()))) if self.task_scores else np.nan

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """At the run's start."""
        return self.runs[0].hyperparameters


class Replica(NamedTuple):
    """One repetition of a condition."""

    number: int
    sweeps: tuple[found_sweeps.Sweep, ...]  # of different tasks
    agents: tuple[Agent, ...]
    curve: np.ndarray  # float64 [K], the best agent at each point

    @property
    def scores(self) -> list[float]:
        """The agents' final scores, without those that have none."""
        return [agent.score for agent in self.agents if np.isfinite(agent.score)]


class Condition(NamedTuple):
    """What shares a label."""

    label: str
    replicas: tuple[Replica, ...]
    curve: aggregates.ReplicaRange

    @property
    def runs(self) -> list[found_sweeps.Agent]:
        """All runs of all agents and replicas."""
        return [run for replica in self.replicas for agent in replica.agents for run in agent.runs]


class SuiteResults(NamedTuple):
    """All conditions of one suite."""

    protocol: Protocol
    conditions: tuple[Condition, ...]


def summarise(
    found: Sequence[found_sweeps.Sweep], bucket: int = 0
) -> tuple[list[SuiteResults], list[str]]:
    """Measures sweeps; those of one label and replica but different tasks are one sweep.

    Args:
      found: sweeps of any suites and labels, running or finished.
      bucket: env frames, one bucket a point; 0 for `aggregates.choose_bucket`'s.

    Returns:
      The results of each suite, and a line for whatever is missing.
    """
    results, notes = [], []
    kept = _without_duplicates(found, notes)
    for suite in sorted({sweep.suite for sweep in kept}):
        of_suite = [sweep for sweep in kept if sweep.suite == suite]
        protocol = _choose_protocol(of_suite, bucket, notes)
        labels = sorted({sweep.label for sweep in of_suite})
        conditions = tuple(
            _measure_condition(protocol, [s for s in of_suite if s.label == label], notes)
            for label in labels
        )
        results.append(SuiteResults(protocol, conditions))
    return results, notes


def _without_duplicates(
    found: Sequence[found_sweeps.Sweep], notes: list[str]
) -> list[found_sweeps.Sweep]:
    kept: dict[tuple[str, str, int, str], found_sweeps.Sweep] = {}
    for sweep in found:
        keys = [(sweep.suite, sweep.label, sweep.replica, task) for task in sweep.tasks]
        taken = [key for key in keys if key in kept]
        if taken:
            notes.append(
                f"{sweep.folder} is left out: {kept[taken[0]].folder} has its label "
                f"{sweep.label!r}, replica {sweep.replica} and task {taken[0][-1]} too"
            )
        else:
            kept |= dict.fromkeys(keys, sweep)
    return list({sweep.folder: sweep for sweep in kept.values()}.values())


def _choose_protocol(found: list[found_sweeps.Sweep], bucket: int, notes: list[str]) -> Protocol:
    suite = found[0].suite
    tasks = {task for sweep in found for agent in sweep.agents for task in agent.episodes}
    unknown = sorted(task for task in tasks if reference.normalised(suite, task, 0) is None)
    if unknown and len(unknown) < len(tasks):
        notes.append(f"{suite}: raw returns, since there is no reference score of {unknown[0]}")
    chosen = aggregates.choose_bucket(suite, max(sweep.env_frames for sweep in found))
    return Protocol(suite, tuple(sorted(tasks)), not unknown, *((bucket, 1) if bucket else chosen))


def _measure_condition(
    protocol: Protocol, found: list[found_sweeps.Sweep], notes: list[str]
) -> Condition:
    notes += _other_settings(found)
    numbers = sorted({sweep.replica for sweep in found})
    replicas = tuple(
        _measure_replica(protocol, [s for s in found if s.replica == number], notes)
        for number in numbers
    )
    curve = aggregates.over_replicas([replica.curve for replica in replicas])
    return Condition(found[0].label, replicas, curve)


def _measure_replica(
    protocol: Protocol, found: list[found_sweeps.Sweep], notes: list[str]
) -> Replica:
    notes += _missing(protocol, found)
    names = sorted({agent.name for sweep in found for agent in sweep.agents})
    runs = {
        name: [(s.env_frames, agent) for s in found for agent in s.agents if agent.name == name]
        for name in names
    }
    # A task that nobody has played yet would leave every agent without a median.
    played = sorted({task for sweep in found for agent in sweep.agents for task in agent.episodes})
    tasks = {name: _tasks(played, runs[name]) for name in names}
    first_tasks = tasks[names[0]] if names else []
    is_comparable = all(of_agent == first_tasks for of_agent in tasks.values())
    if not is_comparable:
        notes.append(
            f"{found[0].label!r}, replica {found[0].replica}: agents play different tasks, so that "
            "their scores do not compare, and no curve has the best of them"
        )
    curves = {name: _bucket_means(protocol, tasks[name], runs[name]) for name in names}
    agents = tuple(
        _measure_agent(protocol, name, [agent for _, agent in runs[name]], curves[name])
        for name in names
    )
    best = np.zeros(0)
    if first_tasks and is_comparable:
        best = aggregates.sweep_curve(list(curves.values()), protocol.group)
    return Replica(found[0].replica, tuple(found), agents, best)


def _tasks(played: Sequence[str], runs: list[tuple[int, found_sweeps.Agent]]) -> list[str]:
    """What an agent is measured on: what it was given as a hyper-parameter, or all tasks."""
    own = {task for _, agent in runs for task in agent.own_tasks}
    return [task for task in played if task in own or not own]


def _bucket_means(
    protocol: Protocol, tasks: Sequence[str], runs: list[tuple[int, found_sweeps.Agent]]
) -> dict[str, np.ndarray]:
    """Task -> scores [K] of one agent; K is 0 for a task that it has not played."""
    means = {task: np.zeros(0) for task in tasks}
    for env_frames, agent in runs:
        for task, episodes in agent.episodes.items():
            # What is reported after the last update belongs to the last bucket.
            steps = np.minimum(episodes.env_frames, env_frames - 1)
            values = aggregates.bucket_means(steps, episodes.returns, protocol.bucket)
            means[task] = np.array([protocol.score(task, value) for value in values])
    return means


def _measure_agent(
    protocol: Protocol,
    name: str,
    runs: list[found_sweeps.Agent],
    means: Mapping[str, np.ndarray],
) -> Agent:
    returns = {
        task: episodes.returns[-LAST_EPISODES:]
        for run in runs
        for task, episodes in run.episodes.items()
    }
    task_scores = {
        task: protocol.score(task, float(returns[task].mean())) if task in returns else np.nan
        for task in means
    }
    return Agent(
        name,
        tuple(runs),
        aggregates.sweep_curve([means], protocol.group) if means else np.zeros(0),
        task_scores,
        min((len(returns.get(task, ())) for task in means), default=0),
    )


def _other_settings(found: list[found_sweeps.Sweep]) -> list[str]:
    """A line for the first two sweeps of a label that are not repetitions of each other."""
    first, *others = found
    for other in others:
        for key in sorted(first.settings.keys() & other.settings.keys()):  # other agents lack some
            one, another = first.settings[key], other.settings[key]
            if one != another:
                return [
                    f"{first.label!r}: {key} is {one!r} in {first.folder}, but {another!r} in "
                    f"{other.folder}, which are taken together"
                ]
    return []


def _missing(protocol: Protocol, found: list[found_sweeps.Sweep]) -> list[str]:
    """A line for each kind of thing that a replica lacks."""
    where, notes = f"{found[0].label!r}, replica {found[0].replica}", []
    played = {task for sweep in found for agent in sweep.agents for task in agent.episodes}
    absent = [task for task in protocol.tasks if task not in played]
    if absent:
        notes.append(f"{where}: no episodes yet of {_named(absent)}")
    for sweep in found:
        silent = [agent.name for agent in sweep.agents if not agent.episodes]
        if silent:
            notes.append(f"{where}: no episodes yet of {_named(silent)} in {sweep.folder}")
    running = [_progress(sweep) for sweep in found if not sweep.is_finished]
    last, budget = min(running, key=lambda pair: pair[0] / pair[1], default=(0, 0))
    if last < budget - protocol.bucket:
        notes.append(f"{where}: the slowest agent is at {last:,} of {budget:,} env frames")
    for one, other in itertools.pairwise(found):
        if [a.hyperparameters for a in one.agents] != [a.hyperparameters for a in other.agents]:
            notes.append(f"{where}: agents differ between {one.folder} and {other.folder}")
            break
    return notes


def _progress(sweep: found_sweeps.Sweep) -> tuple[int, int]:
    """Env frames of the agent that is furthest behind, by its last episode, and of the budget."""
    return min((agent.env_frames for agent in sweep.agents), default=0), sweep.env_frames


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown
