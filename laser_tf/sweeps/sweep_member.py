"""One agent's side of a sweep: its name, its pace, and what its population decides."""

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from laser_tf.monitoring import reporting
from laser_tf.sweeps import rpc, transplant
from laser_tf.training import finiteness, learner

_HEARTBEAT_SECONDS = 0.5
_ATTEMPTS = 6  # heartbeats without an answer, after which the server counts as lost
_WEIGHTS_SECONDS = 120.0  # for a call that carries weights


class ServerLostError(RuntimeError):
    """The sweep's server has gone, or another one has taken its place."""


class SweepMember:
    """Joins a sweep and keeps in touch with it."""

    def __init__(self, address: str, name: str, secret: str, sweep_id: str | None = None):
        """Takes a name.

        Args:
          address: "host:port" of the sweep's server.
          name: of one of its agents.
          secret: of the sweep.
          sweep_id: of the sweep; None joins any.

        Raises:
          RefusedError: if there is no such agent, its name is taken, it is another sweep, or the
            secret is wrong.
          UnreachableError: if nobody answers.
        """
        self.name = name
        self._client = rpc.Client(address, secret)
        self._session = uuid.uuid4().hex
        asked = {} if sweep_id is None else {"sweep_id": sweep_id}
        joined = self._client.call("join", self._identity() | asked).values
        self.sweep_id: str = joined["sweep_id"]
        self.index: int = joined["index"]
        self.config: dict[str, Any] = joined["config"]  # resolved, nested
        host = address.rpartition(":")[0]
        port = joined["replay_port"]
        self.replay_address = f"{host}:{port}" if port else None  # None: the agent has its own
        self._next_ready: int | None = None  # env frames; None: no population
        self._limit = 0.0  # env frames; until the first report
        self._lost: str | None = None
        self._env_frames = 0
        self._returns: reporting.EpisodeReturns | None = None
        self._closed = threading.Event()
        self.has_left = False  # and the server knows

    def _identity(self) -> dict[str, str]:
        return {"name": self.name, "session": self._session}

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
          RefusedError: if the server refuses.
          ServerLostError: if it has gone.
        """
        self._env_frames, self._returns = env_frames, returns
        answer = self._ask("resume", {"env_frames": env_frames})
        if answer.blob:
            self._take_over(trained, answer.blob)
        trained.set_hyperparameters(answer.values["hyperparameters"])
        self._next_ready = answer.values["next_ready"]
        return answer.values["copied"]

    def start(self) -> None:
        """Begins to report: how far the agent is, and its returns."""
        threading.Thread(target=self._keep_in_touch, name="sweep", daemon=True).start()

    def _keep_in_touch(self) -> None:
        failures = 0
        while not self._closed.is_set():
            try:
                self._report()
                failures = 0
            except rpc.RefusedError as error:  # a new server does not know this session
                self._lost = str(error)
                return
            except rpc.UnreachableError as error:
                failures += 1
                if failures >= _ATTEMPTS:
                    self._lost = str(error)
                    return
            self._closed.wait(_HEARTBEAT_SECONDS)

    def _report(self) -> None:
        values = {
            "env_frames": self._env_frames,
            "mean_return": _number(self._returns.mean_return()),
            "fitness": _number(self._returns.fitness()),
        }
        answer = self._client.call("report", self._identity() | values, seconds=5.0)
        limit = answer.values["limit"]
        self._limit = math.inf if limit is None else limit

    def check(self) -> None:
        """Raises ServerLostError once the server has gone."""
        if self._lost:
            raise ServerLostError(self._lost)

    def has_lost_server(self) -> bool:
        """Whether the server has gone; asks it, where nothing is known yet."""
        if self._returns and not self._lost and not self._closed.is_set():
            try:
                self._report()
            except (rpc.RefusedError, rpc.UnreachableError) as error:
                self._lost = str(error)
        return bool(self._lost)

    def keep_pace(self, env_frames: int, should_stop: Callable[[], bool]) -> None:
        """Waits while the agent is too far ahead of the others."""
        self._env_frames = env_frames
        while env_frames >= self._limit and not should_stop():
            time.sleep(0.02)

    def after_update(self, trained: learner.Learner, env_frames: int) -> bool:
        """Asks the population what to do, when it is time to; returns whether weights changed."""
        self._env_frames = env_frames
        if self._next_ready is None or env_frames < self._next_ready:
            return False
        return self._decide(trained)

    def _decide(self, trained: learner.Learner) -> bool:
        values = {
            "env_frames": self._env_frames,
            "fitness": _number(self._returns.fitness()),
            "hyperparameters": trained.hyperparameters(),
        }
        answer = self._ask("decide", values, transplant.hand_over(trained))
        self._next_ready = answer.values["next_ready"]
        parent = answer.values["parent"]
        if parent:
            logging.info("%s becomes a copy of %s", self.name, parent)
            if self._take_over(trained, answer.blob):
                self._returns.clear()  # they were another policy's
        trained.set_hyperparameters(answer.values["hyperparameters"])
        return bool(parent)

    def _take_over(self, trained: learner.Learner, weights: bytes) -> bool:
        """Whether it could: weights that are not finite are left where they are."""
        try:
            transplant.take_over(trained, weights)
        except finiteness.NonFiniteWeightsError as error:
            logging.warning("%s keeps its own weights: %s", self.name, error)
            return False
        return True

    def _ask(self, method: str, values: dict[str, Any], blob: bytes = b"") -> rpc.Message:
        """Calls where weights may come along, and where the agent cannot go on without an answer.

        It joins again after a lost one: the server may have acted on the question.
        """
        try:
            return self._client.call(
                method, self._identity() | values, blob, seconds=_WEIGHTS_SECONDS
            )
        except rpc.UnreachableError as error:
            self._lost = str(error)
            raise ServerLostError(self._lost) from None

    def close(self, *, finished: bool = False) -> None:
        """Says good-bye, so that the name is free and nobody waits; once.

        Args:
          finished: whether the budget is spent and all of it saved.
        """
        if self._closed.is_set():
            return
        self._closed.set()
        try:
            self._client.call("leave", self._identity() | {"finished": finished}, seconds=5.0)
            self.has_left = True
        except (rpc.RefusedError, rpc.UnreachableError):
            logging.info("%s leaves without a word: the sweep's server is gone", self.name)
        self._client.close()


def _number(value: float) -> float | None:
    """NaN is no JSON."""
    return value if math.isfinite(value) else None
