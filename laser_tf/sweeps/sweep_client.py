"""The client of a sweep's coordinator: equal speed, and the population's decisions."""

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Protocol

from laser_tf import errors
from laser_tf.monitoring import reporting
from laser_tf.sweeps import coordinator, transplant
from laser_tf.training import finiteness, learner

_HEARTBEAT_PERIOD_SECONDS = 0.5
_RETRY_SECONDS = 0.2


class UnansweredError(RuntimeError):
    """The coordinator restarts and does not answer; the call may have had an effect."""


class Call(Protocol):
    """Calls a method of the `coordinator.Coordinator`."""

    def __call__(self, method: str, *arguments: Any) -> Any:
        """Returns the answer.

        Raises:
          UnansweredError: If the coordinator does not answer.
        """


class SweepClient:
    """A member's connection to its sweep."""

    def __init__(
        self,
        name: str,
        index: int,
        call: Call,
        stop: threading.Event,
        replay_address: Callable[[], str] | None,
    ):
        """Joins the sweep.

        Args:
          name: Name of the member.
          index: Index of the member in the sweep, from 0.
          call: Calls the coordinator.
          stop: Set when the member is told to stop.
          replay_address: See `training.membership.Membership`.

        Raises:
          StoppedError: If the member is told to stop before an answer.
        """
        self.name = name
        self.index = index
        self.replay_address = replay_address
        self._call = call
        self._stop = stop
        self._session = uuid.uuid4().hex
        self._next_ready: int | None = None  # Env frames; None without a population.
        self._copied = -1  # Env frames of the last copy.
        self._limit = 0.0  # Env frames; 0 before the first report.
        self._lost: Exception | None = None
        self._env_frames = 0
        self._returns: reporting.EpisodeReturns | None = None
        self._closed = threading.Event()
        self._ask("join")

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Calls until there is an answer. Only for calls that may be repeated."""
        while True:
            try:
                return self._call(method, self.name, self._session, *arguments)
            except UnansweredError:
                if self._stop.wait(_RETRY_SECONDS):
                    raise errors.StoppedError from None

    def resume(
        self, trained: learner.Learner, env_frames: int, returns: reporting.EpisodeReturns
    ) -> int:
        """Applies the population's decisions that the learner has missed.

        Args:
          trained: The learner, new or restored.
          env_frames: Env frames that it has learned from.
          returns: The member's returns, which this client reports.

        Returns:
          The env frames at which the member last became a copy of another member; -1: never.

        Raises:
          StaleError: If another process is this member now.
          StoppedError: If the member is told to stop before an answer.
          UnreadableError: If missed weights cannot be read.
        """
        self._env_frames, self._returns = env_frames, returns
        self._catch_up(trained)
        return self._copied

    def _catch_up(self, trained: learner.Learner) -> None:
        missed: coordinator.CatchUp = self._ask("resume", self._env_frames)
        if missed.weights is not None:
            self._copy(trained, missed.weights)
        trained.set_hyperparameters(missed.hyperparameters)
        self._next_ready, self._copied = missed.next_ready, missed.copied

    def start(self) -> None:
        """Starts to report progress and returns."""
        threading.Thread(target=self._keep_in_touch, name="sweep", daemon=True).start()

    def _keep_in_touch(self) -> None:
        while not (self._closed.is_set() or self._lost):
            try:
                self._report()
            except UnansweredError:
                pass  # The next report follows.
            except Exception as error:  # Raised by `check` in the learner's thread.
                self._lost = error
            self._closed.wait(_HEARTBEAT_PERIOD_SECONDS)

    def _report(self) -> None:
        assert self._returns  # `resume` is called before `start`.
        mean_return, fitness = self._returns.mean_return(), self._returns.fitness()
        arguments = self.name, self._session, self._env_frames, mean_return, fitness
        self._limit = self._call("report", *arguments)

    def check(self) -> None:
        """Raises the error that ended the connection, e.g. StaleError."""
        if self._lost:
            raise self._lost

    def throttle(self, env_frames: int, should_stop: Callable[[], bool]) -> None:
        """Blocks while the member is too far ahead of the others."""
        self._env_frames = env_frames
        while env_frames >= self._limit and not should_stop():
            time.sleep(0.02)

    def after_update(self, trained: learner.Learner, env_frames: int) -> bool:
        """Applies a decision of the population if one is due; returns whether weights changed.

        Raises:
          StaleError, StoppedError, UnreadableError: See `resume`.
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
                transplant.get_state(trained),
            )
        except UnansweredError:
            # The decision may have been made; otherwise the member asks again.
            self._catch_up(trained)
            return self._copied > copied
        self._next_ready = decided.next_ready
        if decided.weights is not None:
            logging.info("%s becomes a copy of %s", self.name, decided.parent)
            self._copied = self._env_frames
            self._copy(trained, decided.weights)
        trained.set_hyperparameters(decided.hyperparameters)
        return decided.weights is not None

    def _fitness(self) -> float:
        return self._returns.fitness() if self._returns else math.nan

    def _copy(self, trained: learner.Learner, weights: coordinator.Weights) -> None:
        """Copies weights, unless they are not finite."""
        try:
            transplant.set_state(trained, weights)
        except finiteness.NonFiniteWeightsError as error:
            logging.warning("%s keeps its own weights: %s", self.name, error)
            return
        assert self._returns
        self._returns.clear()  # Of another policy.

    def close(self, *, finished: bool = False) -> None:
        """Leaves the sweep, so that no member waits for this one. Repeated calls do nothing.

        Args:
          finished: Whether the budget is spent and the member saved.

        Raises:
          StaleError, StoppedError: See `resume`.
        """
        if self._closed.is_set():
            return
        self._closed.set()
        self._ask("leave", finished)
