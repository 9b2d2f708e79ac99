"""The coordinator of a sweep: equal speed, and the population's decisions."""

import io
import logging
import math
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from laser_tf import errors
from laser_tf.sweeps import lineage, population, speed_limiter, sweep_config
from laser_tf.workdir import atomic, run_directory

NAME = "coordinator"  # Of its Ray actor.
Weights = Mapping[str, np.ndarray]  # See `sweep_client.get_state`.


class Decision(NamedTuple):
    """The newest decision about a member, as far as the member has not applied it."""

    next_decision_at: int | None  # Env frames; None without a population.
    last_copied_at: int  # Env frames at which it became a copy of another member; -1: never.
    hyperparameters: Mapping[str, float]  # Values to set; may be empty.
    parent: str | None  # Member whose weights it copies; None: it keeps its own.
    weights: Weights | None  # Weights of the parent.


class Coordinator:
    """Answers the members' calls, one at a time.

    State that must survive a restart is in files; members report everything else again. Ray repeats
    calls whose answer was lost.
    """

    def __init__(
        self,
        config: sweep_config.SweepConfig,
        workdir: pathlib.Path,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Expects all members that have not finished; raises the errors of `lineage.read`."""
        self._config = config
        self._workdir = workdir
        self._reports: dict[str, dict[str, Any]] = {name: {} for name in config.members}
        self._limiter = speed_limiter.SpeedLimiter(
            list(config.members), config.sweep.max_lead_env_frames, clock
        )
        for name in filter(self._is_finished, config.members):
            self._limiter.leave(name)
        self._population = None
        if config.population.method != "none":
            self._population = population.Population(config.population, workdir / lineage.FILE)

    def join(self, name: str) -> None:
        """Records the start of the process of member `name`."""
        self._limiter.expect(name)

    def report(self, name: str, env_frames: int, mean_return: float, fitness: float) -> float:
        """Records the progress of a member, NaN for unknown values.

        Returns:
          The env frames up to which it may learn now; infinite without equal speed.
        """
        self._reports[name] = {
            "env_frames": env_frames, "mean_return": mean_return, "fitness": fitness
        }  # fmt: skip
        self._limiter.report(name, env_frames)
        return self._limiter.limit(name) if self._config.sweep.equal_speed else math.inf

    def resume(self, name: str, env_frames: int) -> Decision:
        """Returns the newest decision about a member, without what the member has applied.

        The result is the same until the member has a checkpoint after the decision.

        Raises:
          UserError: If the weights are missing or damaged; the message names their file.
        """
        if not self._population:
            return Decision(None, -1, {}, None, None)
        latest, copy = self._population.latest(name), self._population.latest_copy(name)
        next_decision_at = self._population.next_decision_at(name)
        last_copied_at = copy.env_frames if copy else -1
        if latest is None or env_frames > latest.env_frames:
            return Decision(next_decision_at, last_copied_at, {}, None, None)
        # Without a parent the stored weights are the member's own, which it has.
        weights = _read_weights(self._weights(name)) if latest.parent else None
        return Decision(
            next_decision_at, last_copied_at, latest.hyperparameters, latest.parent, weights
        )

    def decide(
        self,
        name: str,
        env_frames: int,
        fitness: float,
        hyperparameters: Mapping[str, float],
        weights: Weights,
    ) -> Decision:
        """Decides whether a member of a population continues or copies a better one."""
        assert self._population  # Otherwise the member is never due.
        latest = self._population.latest(name)
        if latest and latest.env_frames == env_frames:  # The first answer was lost.
            return self.resume(name, env_frames)
        others = {o: r["fitness"] for o, r in self._reports.items() if r and o != name}
        decided = self._population.decide(name, env_frames, fitness, hyperparameters, others)
        try:
            copied = _read_weights(self._weights(decided.parent)) if decided.parent else weights
            # Weights after the decision, so that they belong to the hyper-parameters of the record.
            # On disk, because a restarted coordinator must still have them.
            _write_weights(self._weights(name), copied)
            self._population.record(decided)
        except (OSError, errors.UserError) as error:
            logging.warning("Postponed the decision about %s: %s", name, error)
            # The member continues unchanged and asks again soon.
            again = env_frames + max(1, self._config.population.ready_env_frames // 10)
            return self.resume(name, env_frames)._replace(next_decision_at=again)
        return self.resume(name, env_frames)

    def finish(self, name: str) -> None:
        """Records that a member has spent its budget, so that the others do not wait for it."""
        folder = self._workdir / run_directory.FINISHED_MEMBERS
        folder.mkdir(exist_ok=True)
        (folder / name).touch()
        self._limiter.leave(name)

    def status(self) -> dict[str, dict[str, Any]]:
        """Returns the last report of each member, with `finished`."""
        status = {}
        for name, report in self._reports.items():
            finished = self._is_finished(name)
            # A member that finished before this process started sends no report.
            done = {"env_frames": self._config.members[name].run.env_frames} if finished else {}
            status[name] = report | done | {"finished": finished}
        return status

    def _is_finished(self, name: str) -> bool:
        return (self._workdir / run_directory.FINISHED_MEMBERS / name).exists()

    def _weights(self, name: str) -> pathlib.Path:
        return self._workdir / "population" / f"{name}.npz"


def _write_weights(path: pathlib.Path, weights: Weights) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez(buffer, **weights)
    atomic.write(path, buffer.getvalue())


def _read_weights(path: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:  # Damage causes almost any error of NumPy and zipfile.
        reason = getattr(error, "strerror", None) or f"it is damaged, {type(error).__name__}"
        raise errors.UserError(
            f"Cannot read {path}, the weights of a member ({reason}). Restore the file from a "
            "backup, or start again with another --workdir."
        ) from None
