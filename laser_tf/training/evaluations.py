"""Periodic evaluations during training: schedule, evaluator and results."""

import math
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from laser_tf.agents import base
from laser_tf.environments import worker_pool
from laser_tf.host import log_messages
from laser_tf.monitoring import evaluation_log, tensorboard
from laser_tf.training import callbacks, run_config


class Evaluator(Protocol):
    """Runs one evaluation at a time in another process; its methods do not block."""

    def begin(self, weights: Sequence[np.ndarray], env_frames: int, learner_updates: int) -> None:
        """Starts an evaluation; see `evaluator.Evaluator.evaluate`."""

    def result(self) -> Mapping[str, Any] | worker_pool.Failure | None:
        """Returns the summary or the failure once; None while the evaluation runs."""


class Evaluations:
    """The evaluations of a run, for the learner's thread; none without an evaluator.

    At most one runs at a time. Evaluations that become due in the meantime are skipped: the next
    one uses the newest weights.
    """

    def __init__(
        self,
        config: run_config.RunConfig,
        workdir: pathlib.Path,
        agent: base.Agent,
        evaluator: Evaluator | None,
        on_evaluation: Callable[[callbacks.Evaluation], None],
        last_seconds: float = 60.0,
    ):
        self.log = evaluation_log.EvaluationLog(workdir)
        self._suite = config.environment.suite
        self._period = config.run.evaluate_every_env_frames if evaluator else 0
        self._agent = agent
        self._evaluator = evaluator
        self._last_seconds = last_seconds
        self._notice = log_messages.FailureNotice("Evaluations during training work again")
        self._due = math.inf  # env frames
        self._on_evaluation = on_evaluation
        self._is_running = False
        self._weights: list[np.ndarray] = []  # weights that are being evaluated
        self._has_chart = False

    def resume(self, env_frames: int | None) -> None:
        """Drops rows of the log, see `csv_log.CsvLog.resume`, and schedules the next evaluation.

        An evaluation that ran when the run ended has no row and is due at once.
        """
        if self._period or self.log.exists():
            rows = self.log.resume(env_frames)
            self._schedule(max((row.env_frames for row in rows), default=0))

    def _schedule(self, env_frames: int) -> None:
        """Sets the next evaluation to the first multiple of the period beyond `env_frames`."""
        if self._period:
            self._due = (env_frames // self._period + 1) * self._period

    def update(
        self, env_frames: int, learner_updates: int, writer: tensorboard.MetricsWriter
    ) -> None:
        """Records a result and starts an evaluation that is due. Call it after each update."""
        self._record(writer)
        if self._evaluator and not self._is_running and env_frames >= self._due:
            self._schedule(env_frames)
            self._is_running = True
            self._weights = [variable.numpy() for variable in self._agent.acting_variables]
            self._evaluator.begin(self._weights, env_frames, learner_updates)

    def finish(self, writer: tensorboard.MetricsWriter, should_stop: Callable[[], bool]) -> None:
        """Waits for the evaluation that runs, if any.

        A run that ends without a signal waits up to `last_seconds`.
        """
        deadline = time.monotonic() + self._last_seconds
        while self._is_running:
            self._record(writer)
            if should_stop() or time.monotonic() >= deadline:
                return
            time.sleep(0.02)

    def _record(self, writer: tensorboard.MetricsWriter) -> None:
        outcome = self._evaluator.result() if self._evaluator and self._is_running else None
        if outcome is None:
            return
        self._is_running = False
        if isinstance(outcome, worker_pool.Failure):
            self._notice.failed(
                f"The evaluation during training failed: {outcome.reason}; training continues, and "
                "the next evaluation starts when it is due"
            )
            return
        self._notice.succeeded()
        self.log.add_summary(outcome)
        if not self._has_chart:
            self._has_chart = True
            writer.chart_returns()
        writer.write(outcome["env_frames"], evaluation_log.metrics(self._suite, outcome))
        self._on_evaluation(
            callbacks.Evaluation(
                outcome["env_frames"],
                outcome["learner_updates"],
                outcome["mean_return"],
                outcome,
                self._weights,
            )
        )
