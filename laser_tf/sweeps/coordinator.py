"""The coordinator of a sweep: equal speed, and the population's decisions."""

import dataclasses
import logging
import math
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from laser_tf.sweeps import lineage, population, speed_limiter, sweep_config, weight_store
from laser_tf.workdir import run_directory

Weights = Mapping[str, np.ndarray]  # See `transplant.get_state`.


class StaleError(RuntimeError):
    """Another process is this member now."""


class CatchUp(NamedTuple):
    """The decisions about a member that a resumed member may have missed."""

    next_ready: int | None  # Env frames of the next decision; None without a population.
    copied: int  # Env frames at which it last became a copy of another member; -1: never.
    hyperparameters: Mapping[str, float]  # Missed values; may be empty.
    weights: Weights | None  # Missed weights.


class Decision(NamedTuple):
    """A decision about a member of a population."""

    parent: str | None  # Member whose weights it copies; None: it keeps its own.
    hyperparameters: Mapping[str, float]
    next_ready: int  # Env frames of the next decision.
    weights: Weights | None  # The parent's.


@dataclasses.dataclass
class _Member:
    """The coordinator's view of a member."""

    # Session of the member's process; "": its process has ended; None: unknown, because no process
    # has called since this coordinator started.
    session: str | None = None
    has_reported: bool = False  # In this session.
    report: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def fitness(self) -> float:
        return self.report.get("fitness", math.nan)


class Coordinator:
    """Answers the members' calls, one at a time.

    State that must survive a restart is in files; members report everything else again.
    """

    def __init__(
        self,
        config: sweep_config.SweepConfig,
        folder: pathlib.Path,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Expects all members that have not finished.

        Args:
          config: Configuration of the sweep.
          folder: Directory of the sweep, with the lineage and the names of finished members.
          clock: Returns seconds.

        Raises:
          ValueError: If the lineage is damaged.
          OSError: If the lineage cannot be read or written.
        """
        self._config = config
        self._folder = folder
        self._members = {name: _Member() for name in config.members}
        self._limiter = speed_limiter.SpeedLimiter(
            list(config.members), config.sweep.max_lead_env_frames, clock
        )
        for name in config.members:
            if self._finished(name).exists():
                self._limiter.leave(name)
        self._population = None
        if config.population.method != "none":
            self._population = population.Population(
                config.population,
                lineage.Lineage(folder / lineage.FILE, config.population.tuned),
            )

    def join(self, name: str, session: str) -> None:
        """Records the start of a member's process, which replaces any previous one.

        Args:
          name: Name of the member.
          session: Identifies the process.
        """
        self._members[name].session = session
        self._members[name].has_reported = False
        self._limiter.expect(name)

    def _member(self, name: str, session: str) -> _Member:
        """Returns the member.

        Raises:
          StaleError: If another process has replaced the caller.
        """
        member = self._members[name]
        if member.session is None:
            self.join(name, session)
        if session != member.session:
            raise StaleError(f"another process is {name} now")
        return member

    def report(
        self, name: str, session: str, env_frames: int, mean_return: float, fitness: float
    ) -> float:
        """Records the progress of a member.

        Args:
          name: Name of the member.
          session: Session of its process.
          env_frames: Env frames that it has learned from.
          mean_return: Mean return of its training; NaN before the first episode.
          fitness: Fitness of its weights; NaN if unknown.

        Returns:
          The env frames up to which it may learn now; infinite without equal speed.

        Raises:
          StaleError: If another process has replaced the caller; also raised by other calls.
        """
        member = self._member(name, session)
        member.report = {
            "env_frames": env_frames,
            "mean_return": mean_return,
            "fitness": fitness,
        }
        if member.has_reported:
            self._limiter.report(name, env_frames)
        else:
            self._limiter.join(name, env_frames)
            member.has_reported = True
        return self._limiter.limit(name) if self._config.sweep.equal_speed else math.inf

    def resume(self, name: str, session: str, env_frames: int) -> CatchUp:
        """Returns the decisions that a member may have missed.

        An answer may be lost, or its effect not saved. The result is the same until the member has
        a checkpoint after the decision.

        Args:
          name: Name of the member.
          session: Session of its process.
          env_frames: Env frames that it has learned from.

        Raises:
          UnreadableError: If the missed weights cannot be read.
        """
        self._member(name, session)
        if not self._population:
            return CatchUp(None, -1, {}, None)
        latest, copy = self._population.latest(name), self._population.latest_copy(name)
        has_missed_values = latest is not None and env_frames <= latest.env_frames
        # After a later decision the stored weights belong to it; the member had copied before.
        has_missed_weights = has_missed_values and copy is latest
        return CatchUp(
            self._population.next_ready(name),
            copy.env_frames if copy else -1,
            latest.hyperparameters if latest and has_missed_values else {},
            weight_store.read(self._weights(name)) if has_missed_weights else None,
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
        """Decides whether a member of a population continues or copies a better one.

        Args:
          name: Name of the member.
          session: Session of its process.
          env_frames: Env frames that it has learned from.
          fitness: Fitness of its weights; NaN if unknown.
          hyperparameters: Its present hyper-parameters.
          weights: Its weights, which others may copy.
        """
        self._member(name, session)
        assert self._population  # or `resume` had said that the member is never due
        others = {other: m.fitness for other, m in self._members.items() if other != name}
        decided = self._population.decide(name, env_frames, fitness, hyperparameters, others)
        try:
            copied = weight_store.read(self._weights(decided.parent)) if decided.parent else None
            # Weights after the decision, so that they belong to the hyper-parameters of the record.
            # On disk, because a restarted coordinator must still have them.
            weight_store.write(self._weights(name), copied or weights)
            self._population.record(decided)
        except (OSError, weight_store.UnreadableError) as error:
            logging.warning("Postponed the decision about %s: %s", name, error)
            # The member continues unchanged and asks again soon.
            again = env_frames + max(1, self._config.population.ready_env_frames // 10)
            return Decision(None, {}, again, None)
        next_ready = self._population.next_ready(name)
        return Decision(decided.parent, decided.hyperparameters, next_ready, copied)

    def _weights(self, name: str) -> pathlib.Path:
        return self._folder / "population" / f"{name}.npz"

    def leave(self, name: str, session: str, finished: bool) -> None:
        """Records the end of a member and whether it has spent its budget."""
        if self._members[name].session != "":  # Else the answer to an earlier call was lost.
            self._member(name, session)
        if finished:
            self._note_finished(name)
        self.mark_dead(name)

    def _note_finished(self, name: str) -> None:
        try:
            self._finished(name).parent.mkdir(exist_ok=True)
            self._finished(name).touch()
        except OSError as error:  # The member reports it again when the sweep is resumed.
            logging.warning("Cannot record that %s is finished: %s", name, error)

    def mark_dead(self, name: str) -> None:
        """Stops waiting for a member whose process has died, until a new process joins."""
        self._members[name].session = ""
        self._limiter.leave(name)

    def _finished(self, name: str) -> pathlib.Path:
        """Returns the file whose existence marks a member as finished."""
        return self._folder / run_directory.FINISHED_MEMBERS / name

    def status(self) -> dict[str, dict[str, Any]]:
        """Returns the last report of each member, with `finished`."""
        status = {}
        for name, member in self._members.items():
            finished = self._finished(name).exists()
            # A member that finished before this process started sends no report.
            done = {"env_frames": self._config.members[name].run.env_frames} if finished else {}
            status[name] = member.report | done | {"finished": finished}
        return status
