"""Shared state of a run: the reports of roles, weights, episodes and addresses."""

import collections
import enum
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from laser_tf.environments import episode_statistics, worker_pool

ACTOR = "actor_"  # Prefix of the names of all actors.
_MAX_EPISODES = 100_000  # Episodes kept until a learner takes them.

_Outcome = Mapping[str, Any] | worker_pool.Failure  # of an evaluation


class Status(enum.Enum):
    """The activity of a role; the values appear in `roles.csv`."""

    STARTING = "starting"
    WAITING_FOR_LOCK = "waiting for lock"  # of a directory that another process still uses
    WAITING = "waiting"  # for another role
    RESTORING = "restoring"  # replay; without heartbeats, because Reverb holds the GIL
    RUNNING = "running"
    EVALUATING = "evaluating"
    SAVING = "saving"
    STOPPED = "stopped"  # the role's `run` has returned or failed
    FINISHED = "finished"
    FAILED = "failed"  # and not restarted again


class Heartbeat(NamedTuple):
    """The state of a role as its process reports it."""

    host: str
    pid: int
    status: Status
    detail: str  # What a waiting or running role does now, in words; may be empty.
    must_progress: bool  # Whether no progress for long is a hang, e.g. in an environment's step.
    metrics: Mapping[str, float]  # Name -> value, for TensorBoard and Prometheus.
    age_seconds: float = 0.0
    announcements: Sequence[str] = ()  # Warnings of the role that the driver shows, too.


class PublishedWeights(NamedTuple):
    """A learner's weights in Ray's object store."""

    learner_updates: int
    env_frames: int
    # A list of one `ray.ObjectRef`: Ray replaces a bare reference by its value.
    boxed_reference: Any


class RunState:
    """Holds the shared state; `fleet.Fleet` makes it a Ray actor, which runs one call at a time.

    After a restart the state is soon the same: everything except episodes is sent again.
    """

    def __init__(self):
        self._heartbeats: dict[str, tuple[float, Heartbeat]] = {}
        self._replay_address: str | None = None
        self._weights: PublishedWeights | None = None
        self._learners: dict[int, str] = {}  # Rank -> address, in the current `rendezvous`.
        self._pending_eval: PublishedWeights | None = None
        # The last evaluated weights and their outcome.
        self._evaluated: tuple[PublishedWeights, _Outcome] | None = None
        self._episodes: collections.deque = collections.deque(maxlen=_MAX_EPISODES)

    def report(
        self,
        role: str,
        heartbeat: Heartbeat,
        episodes: Sequence[episode_statistics.Episode],
        replay_address: str | None,
    ) -> None:
        """Stores a role's heartbeat, its new episodes, and "host:port" if it serves replay."""
        self._heartbeats[role] = time.monotonic(), heartbeat
        self._episodes.extend(episodes)
        self._replay_address = replay_address or self._replay_address

    def heartbeats(self) -> dict[str, Heartbeat]:
        """Returns the last heartbeat of each role."""
        now = time.monotonic()
        return {
            role: heartbeat._replace(age_seconds=now - then)
            for role, (then, heartbeat) in self._heartbeats.items()
        }

    def replay_address(self) -> str | None:
        """Returns the "host:port" of replay; None before replay has reported it."""
        return self._replay_address

    def rendezvous(self, rank: int, address: str, world_size: int) -> list[str] | None:
        """Returns the addresses of all learners, by rank; None while some are missing.

        A restarted learner has another address, which starts a new round: the learners that were
        connected to its previous process have to restart, too.
        """
        if self._learners.get(rank, address) != address:
            self._learners.clear()
        self._learners[rank] = address
        if len(self._learners) < world_size:
            return None
        return [self._learners[i] for i in range(world_size)]

    def exchange(
        self, weights: PublishedWeights | None
    ) -> tuple[list[episode_statistics.Episode], dict[str, Heartbeat]]:
        """Stores the learner's newest weights; returns new episodes and all heartbeats."""
        self._weights = weights or self._weights
        episodes = list(self._episodes)
        self._episodes.clear()
        return episodes, self.heartbeats()

    def newest_weights(self, known_updates: int) -> PublishedWeights | None:
        """Returns the newest weights; None before the first, or if they have `known_updates`.

        Weights with fewer updates are new, too: a learner may have resumed from its checkpoint.
        """
        if self._weights is None or self._weights.learner_updates == known_updates:
            return None
        return self._weights

    def request_or_poll_eval(self, weights: PublishedWeights) -> _Outcome | None:
        """Requests an evaluation, in place of any earlier request; returns its outcome, if any.

        Call until there is an outcome, because a restarted `RunState` has no requests. Weights of a
        restarted learner have another reference, so they are evaluated, too.
        """
        if self._evaluated and self._evaluated[0] == weights:
            return self._evaluated[1]
        self._pending_eval, self._evaluated = weights, None
        return None

    def pending_eval(self) -> PublishedWeights | None:
        """Returns the weights to evaluate, if any."""
        return self._pending_eval

    def report_eval(self, weights: PublishedWeights, outcome: _Outcome) -> None:
        """Stores the outcome of a request, unless another one has replaced it."""
        if self._pending_eval == weights:
            self._pending_eval, self._evaluated = None, (weights, outcome)
