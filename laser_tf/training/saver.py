"""Saves a run periodically and at its end."""

import contextlib
import logging
import pathlib
import time
from collections.abc import Callable
from typing import TypeVar

from laser_tf.host import log_messages
from laser_tf.replay import client, server
from laser_tf.training import learner, learner_checkpoints, run_config
from laser_tf.workdir import lock, run_directory

T = TypeVar("T")

_RETRY_PERIOD_SECONDS = 2.0


class Saver:
    """Saves weights often and replay, which is larger, seldom.

    Weights are saved first, so that replay does not use up their disk space, and after
    `before_weights` has written logs that a resumed run cannot recreate. Replay is saved within the
    context that `make_saving_context` returns.
    """

    def __init__(
        self,
        config: run_config.Config,
        workdir: pathlib.Path,
        checkpoints: learner_checkpoints.LearnerCheckpoints,
        replay: client.ReplayClient,
        counters: learner.Counters,
        make_saving_context: server.MakeContext,
        before_weights: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._make_saving_context = make_saving_context
        self._before_weights = before_weights
        self._workdir = workdir
        self._checkpoints = checkpoints
        self._replay = replay
        self._counters = counters
        self._learner_period = 60 * config.checkpoint_minutes
        self._replay_period = 60 * config.replay_checkpoint_minutes
        self._clock = clock
        now = self._last_time = clock()
        self._next_learner = now + self._learner_period
        self._next_replay = now + self._replay_period
        self._learner_notice = log_messages.FailureNotice("Weights can be saved again")
        self._replay_notice = log_messages.FailureNotice("Replay can be saved again")

    def save_weights_next(self) -> None:
        """Makes the next `save_when_due` save the weights."""
        self._next_learner = self._clock()

    def save_when_due(self) -> pathlib.Path | None:
        """Saves what is due; logs a failure once and tries again after the next period.

        Replay is saved only after weights: alone it would look like a run that lost its weights,
        and experience of weights that are not finite is useless. Returns the new checkpoint of
        weights, if any; see `LearnerCheckpoints.save`.

        Raises:
          LostError: If the run directory no longer belongs to this process.
          NonFiniteWeightsError: If the weights are not finite. Older checkpoints are unchanged.
        """
        now, checkpoint = self._clock(), None
        is_replay_due = now >= self._next_replay
        if is_replay_due or now >= self._next_learner:
            self._next_learner = now + self._learner_period
            checkpoint = self._attempt(self._save_learner, self._learner_notice)
            if is_replay_due and not checkpoint:
                self._next_replay = self._next_learner
                return None
        if is_replay_due:
            self._next_replay = now + self._replay_period
            self._attempt(self._save_replay, self._replay_notice)
        return checkpoint

    def _attempt(self, save: Callable[[], T], notice: log_messages.FailureNotice) -> T | None:
        """Returns the result of `save`; None after a failure."""
        try:
            result = save()
        except run_directory.WorkdirError as error:
            notice.failed(f"{error}; training continues and tries again")
            return None
        notice.succeeded()
        return result

    def save_all(self, should_stop: Callable[[], bool] = lambda: True) -> pathlib.Path:
        """Saves weights and returns their checkpoint; a failure to save replay is only logged.

        Weights that cannot be written, e.g. to a full disk, are saved again until it works or
        `should_stop` returns True.

        Raises:
          WorkdirError: If weights cannot be written. For other errors see `save_when_due`.
        """
        checkpoint = self._save_learner_until(should_stop)
        try:
            self._save_replay()
        except run_directory.WorkdirError as error:
            logging.warning("%s; a resumed run uses its previous checkpoint", error)
        return checkpoint

    def _save_learner_until(self, should_stop: Callable[[], bool]) -> pathlib.Path:
        notice = log_messages.FailureNotice(on_recovery="Saved the weights")
        while True:
            try:
                checkpoint = self._save_learner()
            except run_directory.WorkdirError as error:
                if should_stop():
                    raise run_directory.WorkdirError(
                        f"{error}. Fix this, then run the same command; it resumes from the newest "
                        "checkpoint, if any."
                    ) from None
                notice.failed(
                    f"{error}. Fix this: the run ends once it is saved. Ctrl-C ends it unsaved."
                )
                time.sleep(_RETRY_PERIOD_SECONDS)
            else:
                notice.succeeded()
                return checkpoint

    def _save_replay(self) -> None:
        try:
            with self._make_saving_context():
                self._replay.checkpoint()
        except RuntimeError as error:
            raise run_directory.WorkdirError(f"cannot save replay: {error}") from None

    def _save_learner(self) -> pathlib.Path:
        lock.check(self._workdir)
        now = self._clock()
        self._counters.wall_seconds.assign_add(now - self._last_time)
        self._last_time = now
        self._before_weights()
        checkpoint = self._checkpoints.save(int(self._counters.learner_updates.numpy()))
        with contextlib.suppress(run_directory.WorkdirError):  # The next save tries again.
            run_directory.mark_checkpointed(self._workdir)
        return checkpoint
