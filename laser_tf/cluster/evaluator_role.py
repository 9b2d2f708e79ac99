"""The role that evaluates the learner's weights, and the learner's view of it."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray

from laser_tf import errors
from laser_tf.cluster import role, run_state
from laser_tf.environments import faults, worker_pool
from laser_tf.evaluation import evaluator
from laser_tf.training import run_config

_POLL_PERIOD_SECONDS = 0.5
_WEIGHTS_TIMEOUT_SECONDS = 60.0


class RemoteEvaluator:
    """Requests evaluations from an `EvaluatorRole`; see `training.evaluations.Evaluator`."""

    def __init__(self, context: role.RoleContext):
        self._shared_state = context.shared_state
        # Its reference keeps the weights in Ray's object store.
        self._request: run_state.PublishedWeights | None = None
        self._pending_call: Any = None
        self._failure: worker_pool.Failure | None = None

    def begin(self, weights: Sequence[np.ndarray], env_frames: int, learner_updates: int) -> None:
        """See `training.evaluations.Evaluator`."""
        self._request = self._pending_call = self._failure = None
        try:
            reference = ray.put(list(weights))
            self._request = run_state.PublishedWeights(learner_updates, env_frames, [reference])
        except ray.exceptions.RayError as error:  # The object store and its disk are full.
            self._failure = worker_pool.Failure(f"no room for weights ({type(error).__name__})")

    def result(self) -> Mapping[str, Any] | worker_pool.Failure | None:
        """See `training.evaluations.Evaluator`."""
        if self._failure:
            return self._failure
        if self._pending_call is None:
            self._pending_call = self._shared_state.request_or_poll_eval.remote(self._request)
        if not ray.wait([self._pending_call], timeout=0)[0]:
            return None
        outcome, self._pending_call = ray.get(self._pending_call), None
        return outcome


class EvaluatorRole(role.Role):
    """Evaluates until a stop is requested."""

    def __init__(self, context: role.RoleContext, config: run_config.RunConfig):
        super().__init__(context, config)
        self._evaluations = 0
        self._evaluator = evaluator.Evaluator.during_training(
            config, evaluator_id=os.getpid(), traceback_directory=context.traceback_directory
        )

    def run(self) -> bool:
        """See `role.Role`; EnvironmentFailedError if environments fail or an episode is endless."""
        context = self._context
        while not context.stop_requested.is_set():
            context.status = run_state.Status.WAITING
            if request := context.call("pending_eval"):
                context.status = run_state.Status.EVALUATING
                context.call("report_eval", request, self._evaluate(request))
                self._evaluations += 1
            else:
                context.stop_requested.wait(_POLL_PERIOD_SECONDS)
        self._evaluator.close()
        return False

    def _evaluate(self, request: run_state.PublishedWeights) -> Mapping | worker_pool.Failure:
        try:
            weights = ray.get(request.boxed_reference[0], timeout=_WEIGHTS_TIMEOUT_SECONDS)
        except (ray.exceptions.ObjectLostError, ray.exceptions.GetTimeoutError) as error:
            return worker_pool.Failure(f"the weights are lost ({type(error).__name__})")
        try:
            return self._evaluator.evaluate(weights, request.env_frames, request.learner_updates)
        except faults.EnvironmentFailedError as error:
            # Without an outcome, the next process would evaluate the same weights again.
            failure = worker_pool.Failure(errors.one_line(error))
            self._context.call("report_eval", request, failure)
            raise

    def metrics(self) -> Mapping[str, float]:
        """Returns the number of evaluations of this process."""
        return {"evaluations": float(self._evaluations)}
