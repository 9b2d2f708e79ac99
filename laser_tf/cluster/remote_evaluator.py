"""The evaluator in another process, as the learner sees it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray

from laser_tf.cluster import hub, role_process
from laser_tf.environments import worker_pool


class RemoteEvaluator:
    """A `training.evaluations.Evaluator`: asks for evaluations by way of the hub."""

    def __init__(self, context: role_process.Context):
        """Asks for nothing yet; `context` is of the learner's role."""
        self._hub = context.hub
        self._kept: Any = None  # reference to the weights, which are freed without
        self._env_frames = 0  # behind them
        self._asked: Any = None  # reference to the hub's answer
        self._failure: worker_pool.Failure | None = None  # of what was asked last

    def begin(self, weights: Sequence[np.ndarray], env_frames: int, learner_updates: int) -> None:
        """See `training.evaluations.Evaluator`."""
        self._kept, self._failure = None, None
        try:
            self._kept, self._env_frames = ray.put(list(weights)), env_frames
        except ray.exceptions.RayError as error:  # the store and the disk behind it are full
            self._failure = worker_pool.Failure(f"no room for weights ({type(error).__name__})")
            return
        self._hub.ask_evaluation.remote(hub.Weights(learner_updates, env_frames, [self._kept]))

    def result(self) -> Mapping[str, Any] | worker_pool.Failure | None:
        """See `training.evaluations.Evaluator`."""
        if self._failure:
            return self._failure
        if self._asked is None:
            self._asked = self._hub.take_evaluation.remote(self._env_frames)
        if not ray.wait([self._asked], timeout=0)[0]:
            return None
        asked, self._asked = self._asked, None
        try:
            return ray.get(asked)
        except ray.exceptions.RayActorError:
            # With the hub, the question is lost, too.
            return worker_pool.Failure("the run's hub was restarted")
