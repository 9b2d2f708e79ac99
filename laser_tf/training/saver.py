"""When a run's state is saved."""

import contextlib
import logging
import pathlib
import time
from collections.abc import Callable, Mapping

from laser_tf.host import failure_notice
from laser_tf.replay import client
from laser_tf.training import learner, learner_checkpoints, run_config
from laser_tf.workdir import lock, run_directory

Saving = Callable[[], contextlib.AbstractContextManager]


class Saver:
    """Saves weights often, and replay, which is larger, seldom; both at the end.

    Weights come first, so that replay takes no room from them.
    """

    def __init__(
        self,
        config: run_config.Config,
        workdir: pathlib.Path,
        checkpoints: learner_checkpoints.LearnerCheckpoints,
        replay: client.ReplayClient,
        counters: learner.Counters,
        saving_replay: Saving = contextlib.nullcontext,
        flush_logs: Callable[[], Mapping[str, int]] = dict,
    ):
        """Starts the clocks.

        Args:
          config: the section `run`.
          workdir: the run's folder.
          checkpoints: of the weights.
          replay: saves itself.
          counters: among what is saved with the weights.
          saving_replay: entered while replay is saved.
          flush_logs: Called before weights are saved; writes the rows that a resumed run cannot
            recreate and returns the number of rows in each log, by file name.
        """
        self._saving_replay = saving_replay
        self._flush_logs = flush_logs
        self._workdir = workdir
        self._checkpoints = checkpoints
        self._replay = replay
        self._counters = counters
        self._periods = (60 * config.checkpoint_minutes, 60 * config.replay_checkpoint_minutes)
        now = time.monotonic()
        self._clock = now
        self._next_learner, self._next_replay = (now + period for period in self._periods)
        self._learner_notice, self._replay_notice = (
            failure_notice.FailureNotice(f"{what} can be saved again")
            for what in ("weights", "replay")
        )
        self._is_noted = False

    def make_weights_due(self) -> None:
        """Has the next `save_when_due` save the weights."""
        self._next_learner = time.monotonic()

    def save_when_due(self) -> None:
        """Saves what is due; a failure is told once and tried again next time.

        Replay is saved only after weights: alone it would look like a run that lost its weights.

        Raises:
          LostError: If the run directory no longer belongs to this process.
          NonFiniteWeightsError: if the weights are not finite; what was saved before stays.
        """
        now = time.monotonic()
        is_replay_due = now >= self._next_replay
        # With replay, too: what weights that are not finite have played is not worth keeping.
        if is_replay_due or now >= self._next_learner:
            self._next_learner = now + self._periods[0]
            is_saved = self._attempt(self._save_learner, self._learner_notice)
            if is_replay_due and not is_saved:
                self._next_replay = self._next_learner
                return
        if is_replay_due:
            self._next_replay = now + self._periods[1]
            self._attempt(self._save_replay, self._replay_notice)

    def _attempt(self, save: Callable[[], None], notice: failure_notice.FailureNotice) -> bool:
        try:
            save()
        except run_directory.WorkdirError as error:
            notice.failed(f"{error}; training goes on and tries again")
            return False
        notice.succeeded()
        return True

    def save_all(self) -> None:
        """Saves everything, weights first; where replay cannot be saved, that is only told.

        Raises:
          NonFiniteWeightsError: if the weights are not finite; what was saved before stays.
          LostError: If the run directory no longer belongs to this process.
          WorkdirError: if they could not be written; what was saved before stays.
        """
        try:
            self._save_learner()
        except run_directory.WorkdirError as error:
            raise run_directory.WorkdirError(f"{error}. Fix this, then run again") from None
        try:
            self._save_replay()
        except run_directory.WorkdirError as error:
            logging.warning("%s; whoever resumes has what was saved of it before", error)

    def _save_replay(self) -> None:
        try:
            with self._saving_replay():
                self._replay.checkpoint()
        except RuntimeError as error:
            raise run_directory.WorkdirError(f"cannot save replay: {error}") from None

    def _save_learner(self) -> None:
        lock.check(self._workdir)
        now = time.monotonic()
        self._counters.wall_seconds.assign_add(now - self._clock)
        self._clock = now
        row_counts = self._flush_logs()
        self._checkpoints.save(int(self._counters.learner_updates.numpy()), row_counts)
        if not self._is_noted:
            with contextlib.suppress(run_directory.WorkdirError):  # tried again with the next one
                run_directory.mark_checkpointed(self._workdir)
                self._is_noted = True
