"""One agent's side of a sweep: its pace, and what its population decides."""

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Protocol

from laser_tf.monitoring import reporting
from laser_tf.sweeps import coordinator, transplant
from laser_tf.training import finiteness, learner

_HEARTBEAT_SECONDS = 0.5
_AGAIN_SECONDS = 0.2  # from a call without an answer to the next


class UnansweredError(RuntimeError):
    """The coordinator, which is being started again, does not answer: it may have heard or not."""


class StoppedError(RuntimeError):
    """The agent is told to stop while it waits for an answer."""


class Call(Protocol):
    """Calls a method of the `coordinator.Coordinator`."""

    def __call__(self, method: str, *arguments: Any) -> Any:
        """Returns its answer.

        Raises:
          UnansweredError: if there is none.
        """


class SweepMember:
    """Joins a sweep and keeps in touch with it."""

    def __init__(
        self,
        name: str,
        index: int,
        call: Call,
        stop: threading.Event,
        replay_address: Callable[[], str] | None,
    ):
        """Joins.

        Args:
          name: of the agent.
          index: of it in the sweep.
          call: reaches the coordinator.
          stop: set where the agent is told to stop.
          replay_address: see `training.membership.Membership`.

        Raises:
          StoppedError: if the agent is told to stop before it has an answer.
        """
        self.name = name
        self.index = index
        self.replay_address = replay_address
        self._call = call
        self._stop = stop
        self._session = uuid.uuid4().hex
        self._next_ready: int | None = None  # env frames; None: no population
        self._copied = -1  # env frames at which it last became a copy
        self._limit = 0.0  # env frames; until the first report
        self._lost: Exception | None = None
        self._env_frames = 0
        self._returns: reporting.EpisodeReturns | None = None
        self._closed = threading.Event()
        self._ask("join")

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Calls until there is an answer; for what may be heard twice."""
        while True:
            try:
                return self._call(method, self.name, self._session, *arguments)
            except UnansweredError:
                if self._stop.wait(_AGAIN_SECONDS):
                    raise StoppedError from None

    def resume(
        self, trained: learner.Learner, env_frames: int, returns: reporting.EpisodeReturns
    ) -> int:
        """Catches up with what the population decided before the agent's process began.

        Args:
          trained: new or restored; it gets what it has missed.
          env_frames: at which it begins.
          returns: the agent's, that will be reported.

        Returns:
          The env frames at which the agent last became a copy of another; -1: never.

        Raises:
          StaleError: if another process is this agent now.
          StoppedError: if the agent is told to stop before it has an answer.
          UnreadableError: if weights that it has missed cannot be read.
        """
        self._env_frames, self._returns = env_frames, returns
        self._catch_up(trained)
        return self._copied

    def _catch_up(self, trained: learner.Learner) -> None:
        missed: coordinator.Missed = self._ask("resume", self._env_frames)
        if missed.weights is not None:
            self._take_over(trained, missed.weights)
        trained.set_hyperparameters(missed.hyperparameters)
        self._next_ready, self._copied = missed.next_ready, missed.copied

    def start(self) -> None:
        """Begins to report: how far the agent is, and its returns."""
        threading.Thread(target=self._keep_in_touch, name="sweep", daemon=True).start()

    def _keep_in_touch(self) -> None:
        while not (self._closed.is_set() or self._lost):
            try:
                self._report()
            except UnansweredError:
                pass  # it will be there again
            except Exception as error:  # whatever it is, nobody else would hear of it
                self._lost = error
            self._closed.wait(_HEARTBEAT_SECONDS)

    def _report(self) -> None:
        assert self._returns  # `resume` comes before `start`
        mean_return, fitness = self._returns.mean_return(), self._returns.fitness()
        arguments = self.name, self._session, self._env_frames, mean_return, fitness
        self._limit = self._call("report", *arguments)

    def check(self) -> None:
        """Raises what ended the membership, such as StaleError."""
        if self._lost:
            raise self._lost

    def keep_pace(self, env_frames: int, should_stop: Callable[[], bool]) -> None:
        """Waits while the agent is too far ahead of the others."""
        self._env_frames = env_frames
        while env_frames >= self._limit and not should_stop():
            time.sleep(0.02)

    def after_update(self, trained: learner.Learner, env_frames: int) -> bool:
        """Asks the population what to do, when it is time to; returns whether weights changed.

        Raises:
          StaleError, StoppedError, UnreadableError: see `resume`.
        """
        self._env_frames = env_frames
        if self._next_ready is None or env_frames < self._next_ready:
            return False
        return self._decide(trained)

    def _decide(self, trained: learner.Learner) -> bool:
        copied = self._copied
        try:
            decided: coordinator.Decision = self._call(
                "decide",
                self.name,
                self._session,
                self._env_frames,
                self._fitness(),
                trained.hyperparameters(),
                transplant.hand_over(trained),
            )
        except UnansweredError:
            # Perhaps it is decided. If not, the agent is due still, and asks again.
            self._catch_up(trained)
            return self._copied > copied
        self._next_ready = decided.next_ready
        if decided.weights is not None:
            logging.info("%s becomes a copy of %s", self.name, decided.parent)
            self._copied = self._env_frames
            self._take_over(trained, decided.weights)
        trained.set_hyperparameters(decided.hyperparameters)
        return decided.weights is not None

    def _fitness(self) -> float:
        return self._returns.fitness() if self._returns else math.nan

    def _take_over(self, trained: learner.Learner, weights: coordinator.Weights) -> None:
        """Weights that are not finite are left where they are."""
        try:
            transplant.take_over(trained, weights)
        except finiteness.NonFiniteWeightsError as error:
            logging.warning("%s keeps its own weights: %s", self.name, error)
            return
        assert self._returns
        self._returns.clear()  # they were another policy's

    def close(self, *, finished: bool = False) -> None:
        """Says good-bye, so that nobody waits; once.

        Args:
          finished: whether the budget is spent and all of it saved.

        Raises:
          StaleError, StoppedError: see `resume`.
        """
        if self._closed.is_set():
            return
        self._closed.set()
        self._ask("leave", finished)
