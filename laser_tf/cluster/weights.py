"""Weights from the learner to actors, through Ray's object store: one copy for each machine."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ray
import tensorflow as tf

from laser_tf import array_function
from laser_tf.cluster import role, run_state
from laser_tf.host import failure_notice
from laser_tf.training import learner

_TRANSFER_TIMEOUT_SECONDS = 30.0  # Of weights from another machine.


class Publisher:
    """Puts a learner's weights into the object store, in a thread alongside the updates."""

    def __init__(
        self,
        context: role.Context,
        trained: learner.Learner,
        env_frames: Callable[[], int],
        seconds: float,
    ):
        """Starts to publish.

        Args:
          context: The learner's connection to the run.
          trained: The learner.
          env_frames: Returns the number of frames learned from.
          seconds: Min time between two copies.
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
        self._kept: list[Any] = []  # The newest last; other references are freed.
        self._newest: run_state.Weights | None = None
        self._notice = failure_notice.FailureNotice("Weights can be published again.")
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._publish, name="weights", daemon=True)
        self._thread.start()

    def _publish(self) -> None:
        while not self._closed.is_set():
            try:
                self._publish_newest()
                self._notice.succeeded()
            except ray.exceptions.RayError as error:  # The object store and its disk are full.
                self._notice.failed(
                    f"Cannot publish weights ({type(error).__name__}). Actors use older weights "
                    "until the next attempt succeeds."
                )
            self._closed.wait(self._seconds)

    def _publish_newest(self) -> None:
        env_frames = self._env_frames()
        # While the learner waits for experience, its weights do not change.
        if self._newest is None or env_frames != self._newest.env_frames:
            self._newest = self._put(env_frames)
        # Also if unchanged: a restarted state has no weights.
        self._context.call("publish", self._newest)

    def _put(self, env_frames: int) -> run_state.Weights:
        # Variables may differ by one update, which is harmless; see `weights.WeightCopier`.
        updates, values = self._read()
        reference = ray.put(values)
        # Actors may still fetch the previous weights.
        self._kept = [*self._kept[-1:], reference]
        return run_state.Weights(int(updates), env_frames, [reference])

    def close(self) -> None:
        """Stops publishing."""
        self._closed.set()
        self._thread.join(timeout=_TRANSFER_TIMEOUT_SECONDS)


class Subscriber:
    """Copies the learner's newest weights into an actor's agent."""

    def __init__(self, context: role.Context, variables: Sequence[tf.Variable]):
        """Creates the subscriber.

        Args:
          context: The actor's connection to the run.
          variables: Variables of an agent with the learner's configuration.
        """
        self._context = context
        self._variables = tuple(variables)
        self._assign = array_function.ArrayFunction(self._assign_all)
        self._answer: Any = None
        self._updates = -1

    def _assign_all(self, values: Sequence[tf.Tensor]) -> tf.Tensor:
        for variable, value in zip(self._variables, values, strict=True):
            variable.assign(value)
        return tf.constant(len(values))

    @property
    def learner_updates(self) -> int:
        """Learner updates of the present weights; -1 before the first weights."""
        return self._updates

    def refresh(self) -> int:
        """Copies new weights without blocking; blocks for the first weights.

        Returns:
          The learner updates of the weights.

        Raises:
          StoppedError: If the role is told to stop before the first weights.
        """
        while self._updates < 0:
            self._copy(self._context.wait_for("newest_weights", -1, what="the learner's weights"))
            self._context.status = run_state.Status.RUNNING
        if self._answer is None:
            self._answer = self._context.state.newest_weights.remote(self._updates)
        elif ray.wait([self._answer], timeout=0)[0]:
            answer, self._answer = self._answer, None
            try:
                newest = ray.get(answer)
            except ray.exceptions.RayActorError:  # The run's state restarts.
                newest = None
            if newest:
                self._copy(newest)
        return self._updates

    def _copy(self, newest: run_state.Weights) -> None:
        try:
            values: list[np.ndarray] = ray.get(
                newest.reference[0], timeout=_TRANSFER_TIMEOUT_SECONDS
            )
        except (ray.exceptions.ObjectLostError, ray.exceptions.GetTimeoutError) as error:
            # The learner that published them has died; the present weights remain in use.
            logging.info(
                "No weights of %d updates (%s)", newest.learner_updates, type(error).__name__
            )
            self._context.stop.wait(1.0)
            return
        self._assign(values)
        self._updates = newest.learner_updates
