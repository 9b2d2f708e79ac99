"""The hub: where the roles of a run leave what the others need of them.

All that it holds is said again within seconds, so that one which was restarted is soon as before:
roles report once a second, and the learner hands its weights out anew.
"""

import collections
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from laser_tf.environments import episode_statistics, worker_pool

ACTOR = "actor_"  # begins the names of all actors
_EPISODES_KEPT = 100_000  # while no learner takes them


class Health(NamedTuple):
    """How a role is, as it says itself."""

    host: str  # of its machine
    node: str  # Ray's id of it
    process: int
    state: str  # in words
    is_at_risk: bool  # whether what it is at might never end, as a step of an environment
    metrics: Mapping[str, float]  # name -> value, for TensorBoard and Prometheus
    seconds: float = 0.0  # since it was said


class Weights(NamedTuple):
    """What acts: weights that the learner has put into Ray's object store."""

    learner_updates: int  # behind them
    env_frames: int  # learned from by then
    reference: Any  # a list of one `ray.ObjectRef`: a bare one would be fetched by every call


class Hub:
    """Answers one call at a time; made a Ray actor by `fleet.Fleet`."""

    def __init__(self):
        """Knows nothing yet."""
        self._healths: dict[str, tuple[float, Health]] = {}
        self._replay: dict[int, str] = {}
        self._weights: Weights | None = None
        self._learners: dict[int, str] = {}  # of one round, see `meet`
        self._asked: Weights | None = None  # that are to be evaluated
        self._outcome: Mapping[str, Any] | worker_pool.Failure | None = None
        self._episodes: collections.deque = collections.deque(maxlen=_EPISODES_KEPT)

    def report(
        self,
        role: str,
        health: Health,
        episodes: Sequence[episode_statistics.Episode] = (),
        replay: tuple[int, str] | None = None,
    ) -> None:
        """Takes how a role is, the episodes that it has finished, and where its replay listens.

        Args:
          role: its name.
          health: how it is.
          episodes: that have ended since it last reported.
          replay: of a role that serves replay: its index, and "host:port".
        """
        self._healths[role] = time.monotonic(), health
        self._episodes.extend(episodes)
        if replay:
            self._replay[replay[0]] = replay[1]

    def healths(self) -> dict[str, Health]:
        """How each role was when it last reported."""
        now = time.monotonic()
        return {
            role: health._replace(seconds=now - then)
            for role, (then, health) in self._healths.items()
        }

    def replay_address(self, index: int) -> str | None:
        """Where a replay listens, "host:port"; None before it has said so."""
        return self._replay.get(index)

    def meet(self, index: int, address: str, number: int) -> list[str] | None:
        """Brings the learners together that learn with one another; asked until all are there.

        A learner that was begun again asks with another address: those that met before it cannot
        go on without the one that it was, and will be begun again as well.

        Args:
          index: of the learner.
          address: "host:port" that nobody has asked with before.
          number: of learners.

        Returns:
          Their addresses, in order; None while some are missing.
        """
        if self._learners.get(index, address) != address:
            self._learners.clear()
        self._learners[index] = address
        if len(self._learners) < number:
            return None
        return [self._learners[i] for i in range(number)]

    def publish(self, weights: Weights) -> None:
        """Takes the learner's newest weights."""
        self._weights = weights

    def newest_weights(self, other_than: int) -> Weights | None:
        """The newest weights, unless they are those after `other_than` updates, or there are none.

        A learner that goes on from its checkpoint may have fewer updates than before.
        """
        if self._weights is None or self._weights.learner_updates == other_than:
            return None
        return self._weights

    def take_episodes(self) -> list[episode_statistics.Episode]:
        """The episodes that have ended since the last call."""
        episodes = list(self._episodes)
        self._episodes.clear()
        return episodes

    def ask_evaluation(self, weights: Weights) -> None:
        """Takes weights that are to be evaluated, in place of others that were."""
        self._asked, self._outcome = weights, None

    def asked_evaluation(self) -> Weights | None:
        """The weights that are to be evaluated, until there is an outcome."""
        return self._asked

    def give_evaluation(
        self, env_frames: int, outcome: Mapping[str, Any] | worker_pool.Failure
    ) -> None:
        """Takes what came of the evaluation of weights that had learned from so many frames."""
        if self._asked and self._asked.env_frames == env_frames:
            self._asked, self._outcome = None, outcome

    def take_evaluation(self, env_frames: int) -> Mapping[str, Any] | worker_pool.Failure | None:
        """The outcome of what was asked with so many frames, once; None while there is none.

        A hub that was restarted between the question and this knows of neither.
        """
        outcome, self._outcome = self._outcome, None
        if outcome is None and (self._asked is None or self._asked.env_frames != env_frames):
            return worker_pool.Failure("the run's hub was restarted")
        return outcome
