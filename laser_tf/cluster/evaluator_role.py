"""The role that evaluates: whole episodes with the weights that the learner asks about."""

import os
import pathlib
from collections.abc import Mapping

import ray

from laser_tf import errors
from laser_tf.cluster import hub, role_process
from laser_tf.environments import faults, worker_pool
from laser_tf.evaluation import continuous_evaluator
from laser_tf.training import run_config

_POLL_SECONDS = 0.5


class EvaluatorRole(role_process.Role):
    """Evaluates until it is told to stop."""

    def __init__(self, context: role_process.Context, config: run_config.RunConfig):
        """Makes environments and an agent.

        Args:
          context: of the role.
          config: of the run.
        """
        self._context = context
        self._evaluations = 0
        folder: pathlib.Path | None = context.workdir if context.workdir.is_dir() else None
        self._evaluator = continuous_evaluator.ContinuousEvaluator(
            config, attempt=os.getpid(), fault_folder=folder
        )

    def run(self) -> str:
        """See `role_process.Role`.

        Raises:
          EnvironmentFailedError: If the environments fail, or an episode does not end.
        """
        while not self._context.stop.is_set():
            self._context.state = "waits for weights to evaluate"
            asked = self._context.ask("asked_evaluation")
            if asked:
                self._context.state = "plays"
                self._context.ask("give_evaluation", asked.env_frames, self._evaluate(asked))
                self._evaluations += 1
            else:
                self._context.stop.wait(_POLL_SECONDS)
        self._evaluator.close()
        return role_process.TOLD

    def _evaluate(self, asked: hub.Weights) -> Mapping | worker_pool.Failure:
        try:
            weights = ray.get(asked.reference[0], timeout=60.0)
        except (ray.exceptions.ObjectLostError, ray.exceptions.GetTimeoutError) as error:
            return worker_pool.Failure(f"the weights are lost ({type(error).__name__})")
        try:
            return self._evaluator.evaluate(weights, asked.env_frames, asked.learner_updates)
        except faults.EnvironmentFailedError as error:
            # Without an outcome, the next process would evaluate the same weights again.
            failure = worker_pool.Failure(errors.one_line(error))
            self._context.ask("give_evaluation", asked.env_frames, failure)
            raise

    def metrics(self) -> Mapping[str, float]:
        """Evaluations that this process has made."""
        return {"evaluations": float(self._evaluations)}
