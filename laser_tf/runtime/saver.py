"""When a run's state is saved."""

import logging
import time

from laser_tf.replay import connection
from laser_tf.runtime import checkpointing, learner, run_config


class Saver:
    """Saves weights often, and replay, which is larger, seldom; both at the end."""

    def __init__(
        self,
        config: run_config.Config,
        checkpoints: checkpointing.LearnerCheckpoints,
        replay: connection.Connection,
        counters: learner.Counters,
    ):
        """Starts the clocks."""
        self._checkpoints = checkpoints
        self._replay = replay
        self._counters = counters
        self._periods = (60 * config.checkpoint_minutes, 60 * config.replay_checkpoint_minutes)
        now = time.monotonic()
        self._clock = now
        self._next_learner, self._next_replay = (now + period for period in self._periods)

    def make_weights_due(self) -> None:
        """Has the next `save_when_due` save the weights."""
        self._next_learner = time.monotonic()

    def save_when_due(self) -> None:
        """Saves what is due; a failure is told and tried again next time."""
        now = time.monotonic()
        try:
            if now >= self._next_replay:
                self._next_replay = now + self._periods[1]
                self._save_replay()
            if now >= self._next_learner:
                self._next_learner = now + self._periods[0]
                self._save_learner()
        except checkpointing.WorkdirError as error:
            logging.warning("%s", error)

    def save_all(self) -> None:
        """Saves everything, the weights even where replay cannot be saved.

        Raises:
          WorkdirError: if anything could not be written; what was saved before is untouched.
        """
        try:
            self._save_replay()
        finally:
            self._save_learner()

    def _save_replay(self) -> None:
        try:
            self._replay.checkpoint()
        except (RuntimeError, OSError) as error:
            raise checkpointing.WorkdirError(f"cannot save replay: {error}") from None

    def _save_learner(self) -> None:
        now = time.monotonic()
        self._counters.wall_seconds.assign_add(now - self._clock)
        self._clock = now
        self._checkpoints.save(int(self._counters.learner_updates))
