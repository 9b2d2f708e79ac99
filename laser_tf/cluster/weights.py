"""Weights from the learner to actors, through Ray's object store: once for all of a machine."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ray
import tensorflow as tf

from laser_tf.cluster import hub, role_process
from laser_tf.host import failure_notice
from laser_tf.training import array_function, learner

_WAIT_SECONDS = 30.0  # for weights to come from another machine


class Publisher:
    """Puts a learner's weights into the object store, in a thread beside its updates."""

    def __init__(
        self,
        context: role_process.Context,
        trained: learner.Learner,
        env_frames: Callable[[], int],
        seconds: float,
    ):
        """Begins.

        Args:
          context: of the learner's role.
          trained: whose weights.
          env_frames: that it has learned from.
          seconds: from one copy to the next, at least.
        """
        self._context = context
        self._read = array_function.ArrayFunction(
            lambda: (
                trained.counters.learner_updates.read_value(),
                [variable.read_value() for variable in trained.agent.acting_variables],
            )
        )
        self._env_frames = env_frames
        self._seconds = seconds
        self._kept: list[Any] = []  # references, the newest last: what is not kept is freed
        self._newest: hub.Weights | None = None
        self._notice = failure_notice.FailureNotice("weights are handed out again")
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._publish, name="weights", daemon=True)
        self._thread.start()

    def _publish(self) -> None:
        while not self._closed.is_set():
            try:
                self._hand_out()
                self._notice.succeeded()
            except ray.exceptions.RayError as error:  # the store and the disk behind it are full
                self._notice.failed(
                    f"cannot hand out weights ({type(error).__name__}): actors go on with older "
                    "ones; it is tried again"
                )
            self._closed.wait(self._seconds)

    def _hand_out(self) -> None:
        env_frames = self._env_frames()
        # While the learner waits for experience its weights stay in the store as they are.
        if self._newest is None or env_frames != self._newest.env_frames:
            self._newest = self._put(env_frames)
        # Said again although it has not changed: a hub that was restarted knows nothing.
        self._context.ask("publish", self._newest)

    def _put(self, env_frames: int) -> hub.Weights:
        # Two variables may differ by an update, which is harmless: see `weights.WeightCopier`.
        updates, values = self._read()
        reference = ray.put(values)
        # The one before is still being fetched here and there.
        self._kept = [*self._kept[-1:], reference]
        return hub.Weights(int(updates), env_frames, [reference])

    def close(self) -> None:
        """Ends."""
        self._closed.set()
        self._thread.join(timeout=_WAIT_SECONDS)


class Subscriber:
    """Brings the learner's newest weights into an actor's agent."""

    def __init__(self, context: role_process.Context, variables: Sequence[tf.Variable]):
        """Takes the variables of an agent of the learner's configuration."""
        self._context = context
        self._variables = tuple(variables)
        self._assign = array_function.ArrayFunction(self._assign_all)
        self._asked: Any = None  # reference to an answer of the hub's
        self._updates = -1  # behind the weights here

    def _assign_all(self, values: Sequence[tf.Tensor]) -> tf.Tensor:
        for variable, value in zip(self._variables, values, strict=True):
            variable.assign(value)
        return tf.constant(len(values))

    @property
    def learner_updates(self) -> int:
        """Behind the weights that are here; -1 before there are any."""
        return self._updates

    def refresh(self) -> int:
        """Takes what has come since the last call, without waiting, except for the first weights.

        Returns:
          How many learner updates are behind the weights.
        """
        while self._updates < 0 and not self._context.stop.is_set():
            weights = self._context.wait_for("newest_weights", -1, what="the learner's weights")
            if weights:
                self._take(weights)
        if self._asked is None:
            self._asked = self._context.hub.newest_weights.remote(self._updates)
        elif ray.wait([self._asked], timeout=0)[0]:
            asked, self._asked = self._asked, None
            try:
                weights = ray.get(asked)
            except ray.exceptions.RayActorError:  # the hub is being restarted
                weights = None
            if weights:
                self._take(weights)
        return max(0, self._updates)

    def _take(self, weights: hub.Weights) -> None:
        try:
            values: list[np.ndarray] = ray.get(weights.reference[0], timeout=_WAIT_SECONDS)
        except (ray.exceptions.ObjectLostError, ray.exceptions.GetTimeoutError) as error:
            # Of a learner that has died meanwhile: those that are here still act.
            reason = type(error).__name__  # what it says are many lines
            logging.info("no weights after %d updates (%s)", weights.learner_updates, reason)
            self._context.stop.wait(1.0)
            return
        self._assign(values)
        self._updates = weights.learner_updates
