"""Evaluations beside training: when they are due, what plays, and where their results go."""

import math
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from laser_tf.agents import base
from laser_tf.environments import worker_pool
from laser_tf.host import failure_notice
from laser_tf.monitoring import evaluation_log, tensorboard
from laser_tf.training import run_config

_LAST_SECONDS = 60.0  # for the evaluation that is under way when the budget is spent


class Evaluator(Protocol):
    """Plays one evaluation at a time, somewhere else; neither of its calls waits for anything."""

    def begin(self, weights: Sequence[np.ndarray], env_frames: int, learner_updates: int) -> None:
        """Has weights play; see `continuous_evaluator.ContinuousEvaluator.evaluate`."""

    def result(self) -> Mapping[str, Any] | worker_pool.Failure | None:
        """What came of it, once: the summary, or why there is none; None while it is under way."""


class Evaluations:
    """A run's, for the learner's thread; without an evaluator there are none.

    At most one is under way. Where it takes longer than the period, the evaluations that are due
    meanwhile are left out: the next one has the newest weights.
    """

    def __init__(
        self,
        config: run_config.RunConfig,
        workdir: pathlib.Path,
        agent: base.Agent,
        evaluator: Evaluator | None,
    ):
        """Begins nothing yet.

        Args:
          config: of the run.
          workdir: its folder.
          agent: the learner's.
          evaluator: plays; None: nobody does.
        """
        self._suite = config.environment.suite
        self._period = config.run.evaluate_every_env_frames if evaluator else 0
        self._agent = agent
        self._evaluator = evaluator
        self._log = evaluation_log.EvaluationLog(workdir)
        self._notice = failure_notice.FailureNotice("evaluations beside training work again")
        self._due = math.inf  # env frames
        self._is_playing = False
        self._is_charted = False

    @property
    def row_count(self) -> int:
        """Number of rows in the log."""
        return self._log.row_count

    def check(self) -> None:
        """Checks that most rows of the log are readable; writes nothing.

        Raises:
          WorkdirError: If the log cannot be read, or most of its rows are unreadable.
        """
        self._log.check()

    def resume(self, env_frames: int | None, written: int = 0) -> None:
        """Drops from the log what lies beyond a checkpoint, and plans what follows the rest.

        An evaluation that was under way when the run ended has no row: it is due at once.

        Args:
          env_frames: that the checkpoint had consumed; None for a new run.
          written: Number of rows that the checkpoint counts, 0 if unknown.

        Raises:
          WorkdirError: If the log cannot be read or written, or most of its rows are unreadable.
        """
        if self._period or written or self._log.exists():
            self._plan(self._log.resume(env_frames, written))

    def _plan(self, env_frames: int) -> None:
        """Has the next one be due at the period's first multiple beyond these env frames."""
        if self._period:
            self._due = (env_frames // self._period + 1) * self._period

    def offer(
        self, env_frames: int, learner_updates: int, writer: tensorboard.MetricsWriter
    ) -> None:
        """Takes a result that has come, and begins an evaluation that is due; at each update.

        Args:
          env_frames: learned from so far.
          learner_updates: behind the agent's weights, which nobody changes meanwhile.
          writer: of the run's rows in TensorBoard.
        """
        if self._is_playing:
            self._take(writer)
        if self._evaluator and not self._is_playing and env_frames >= self._due:
            self._plan(env_frames)
            self._is_playing = True
            weights = [variable.numpy() for variable in self._agent.acting_variables]
            self._evaluator.begin(weights, env_frames, learner_updates)

    def finish(self, writer: tensorboard.MetricsWriter, should_stop: Callable[[], bool]) -> None:
        """Waits for the evaluation under way, if there is one; not for long, and begins none."""
        deadline = time.monotonic() + _LAST_SECONDS
        while self._is_playing:
            self._take(writer)
            if should_stop() or time.monotonic() >= deadline:
                return
            time.sleep(0.02)

    def _take(self, writer: tensorboard.MetricsWriter) -> None:
        outcome = self._evaluator.result() if self._evaluator else None
        if outcome is None:
            return
        self._is_playing = False
        if isinstance(outcome, worker_pool.Failure):
            self._notice.failed(
                f"the evaluation beside training failed: {outcome.reason}; training goes on, and "
                "another one is tried when it is due"
            )
            return
        self._notice.succeeded()
        self._log.add(outcome)
        if not self._is_charted:
            self._is_charted = True
            writer.chart_returns()
        writer.write(outcome["env_frames"], evaluation_log.metrics(self._suite, outcome))
