"""Where the agents of a sweep meet: equal speed, and the population's decisions."""

import dataclasses
import logging
import math
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from laser_tf.sweeps import kept_weights, lineage, pace, population, sweep_config
from laser_tf.workdir import run_directory

Weights = Mapping[str, np.ndarray]  # see `transplant.hand_over`


class StaleError(RuntimeError):
    """Another process bears the agent's name now."""


class Missed(NamedTuple):
    """What an agent may have missed of the decisions about it."""

    next_ready: int | None  # env frames from which on it is due; None: there is no population
    copied: int  # env frames at which it last became a copy of another; -1: never
    hyperparameters: Mapping[str, float]  # missed, may be empty
    weights: Weights | None  # missed


class Decision(NamedTuple):
    """What an agent of a population goes on with."""

    parent: str | None  # whose weights; None: its own
    hyperparameters: Mapping[str, float]
    next_ready: int  # env frames from which on it is due again
    weights: Weights | None  # the parent's


@dataclasses.dataclass
class _Member:
    """What is known of an agent."""

    # Of the process that bears its name; "": of none any more; None: this coordinator, which may
    # have been restarted, has heard of none yet.
    session: str | None = None
    has_reported: bool = False  # in this session
    report: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def fitness(self) -> float:
        return self.report.get("fitness", math.nan)


class Coordinator:
    """Answers the agents' calls, one at a time.

    All that has to outlive its process is in files; of the rest the agents tell again.
    """

    def __init__(self, config: sweep_config.SweepConfig, folder: pathlib.Path):
        """Expects all agents of a sweep but those that are finished.

        Args:
          config: of the sweep.
          folder: of the sweep; the population's lineage is kept there, and who is finished.

        Raises:
          ValueError: if the lineage is damaged.
          OSError: if it cannot be read or written.
        """
        self._config = config
        self._folder = folder
        self._members = {name: _Member() for name in config.agents}
        self._pace = pace.Pace(list(config.agents), config.sweep.max_lead_env_frames)
        for name in config.agents:
            if self._finished(name).exists():
                self._pace.leave(name)
        self._population = None
        if config.population.method != "none":
            self._population = population.Population(
                config.population,
                lineage.Lineage(folder / lineage.FILE, config.population.tuned),
            )

    def join(self, name: str, session: str) -> None:
        """Takes that a new process works as an agent, in place of any before it.

        Args:
          name: of the agent.
          session: by which the process's calls are told from those of the one before.
        """
        self._members[name].session = session
        self._members[name].has_reported = False
        self._pace.expect(name)

    def _member(self, name: str, session: str) -> _Member:
        """Raises StaleError for a process that has been replaced."""
        member = self._members[name]
        if member.session is None:
            self.join(name, session)
        if session != member.session:
            raise StaleError(f"another process is {name} now")
        return member

    def report(
        self, name: str, session: str, env_frames: int, mean_return: float, fitness: float
    ) -> float:
        """Takes how far an agent is and says how far it may go.

        Args:
          name: of the agent.
          session: of its process.
          env_frames: that it has learned from.
          mean_return: of its training; NaN before the first episode.
          fitness: of its weights; NaN: unknown.

        Returns:
          The env frames up to which it may learn now; infinite where nobody waits.

        Raises:
          StaleError: as of all calls.
        """
        member = self._member(name, session)
        member.report = {
            "env_frames": env_frames,
            "mean_return": mean_return,
            "fitness": fitness,
        }
        if member.has_reported:
            self._pace.report(name, env_frames)
        else:
            self._pace.join(name, env_frames)
            member.has_reported = True
        return self._pace.limit(name) if self._config.sweep.equal_speed else math.inf

    def resume(self, name: str, session: str, env_frames: int) -> Missed:
        """What an agent that goes on from some env frames may have missed.

        An answer was lost, or what it changed was not saved. What is told stays the same until the
        agent has saved itself beyond the decision.

        Args:
          name: of the agent.
          session: of its process.
          env_frames: that it has learned from.

        Raises:
          UnreadableError: if the weights that it goes on from cannot be read.
        """
        self._member(name, session)
        if not self._population:
            return Missed(None, -1, {}, None)
        latest, copy = self._population.latest(name), self._population.latest_copy(name)
        has_missed_values = latest is not None and env_frames <= latest.env_frames
        # After a later decision the kept weights are that one's: who has asked for it had copied.
        has_missed_weights = has_missed_values and copy is latest
        return Missed(
            self._population.next_ready(name),
            copy.env_frames if copy else -1,
            latest.hyperparameters if latest and has_missed_values else {},
            kept_weights.read(self._weights(name)) if has_missed_weights else None,
        )

    def decide(
        self,
        name: str,
        session: str,
        env_frames: int,
        fitness: float,
        hyperparameters: Mapping[str, float],
        weights: Weights,
    ) -> Decision:
        """What an agent of a population does next: goes on, or becomes a copy of a better one.

        Args:
          name: of the agent.
          session: of its process.
          env_frames: that it has learned from.
          fitness: of its weights; NaN: unknown.
          hyperparameters: that it uses.
          weights: that others may copy.
        """
        self._member(name, session)
        assert self._population  # or `resume` had said that the agent is never due
        others = {other: m.fitness for other, m in self._members.items() if other != name}
        decided = self._population.decide(name, env_frames, fitness, hyperparameters, others)
        try:
            copied = kept_weights.read(self._weights(decided.parent)) if decided.parent else None
            # What the agent goes on with, like the record's hyper-parameters: who copies it gets
            # weights and values that belong together. On disk, since a coordinator that comes back
            # must still have what it may give to others.
            kept_weights.write(self._weights(name), copied or weights)
            self._population.record(decided)
        except (OSError, kept_weights.UnreadableError) as error:
            logging.warning("no decision about %s now: %s", name, error)
            # It goes on as it is and asks again, long before it would be due otherwise.
            again = env_frames + max(1, self._config.population.ready_env_frames // 10)
            return Decision(None, {}, again, None)
        next_ready = self._population.next_ready(name)
        return Decision(decided.parent, decided.hyperparameters, next_ready, copied)

    def _weights(self, name: str) -> pathlib.Path:
        return self._folder / "population" / f"{name}.npz"

    def leave(self, name: str, session: str, finished: bool) -> None:
        """Has nobody wait for an agent any more, and notes whether it has spent its budget."""
        if self._members[name].session != "":  # else it has said so before, and was not answered
            self._member(name, session)
        if finished:
            self._note_finished(name)
        self.lose(name)

    def _note_finished(self, name: str) -> None:
        try:
            self._finished(name).parent.mkdir(exist_ok=True)
            self._finished(name).touch()
        except OSError as error:  # it says so again when the sweep is resumed
            logging.warning("cannot note that %s is finished: %s", name, error)

    def lose(self, name: str) -> None:
        """Has nobody wait for an agent whose process has died, until there is another one."""
        self._members[name].session = ""
        self._pace.leave(name)

    def _finished(self, name: str) -> pathlib.Path:
        """The file that says of an agent that it has spent its budget."""
        return self._folder / run_directory.FINISHED_AGENTS / name

    def status(self) -> dict[str, dict[str, Any]]:
        """What the sweep's display shows of each agent."""
        status = {}
        for name, member in self._members.items():
            finished = self._finished(name).exists()
            # Of an agent that was finished before this process began nothing was reported.
            done = {"env_frames": self._config.agents[name].run.env_frames} if finished else {}
            status[name] = member.report | done | {"finished": finished}
        return status
