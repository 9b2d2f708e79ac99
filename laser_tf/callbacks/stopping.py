"""Callbacks that stop a run before its budget is spent."""

import collections
import time
from collections.abc import Mapping

from laser_tf import config_checks, errors
from laser_tf.monitoring import episode_log
from laser_tf.training import callbacks

_MIN_EPISODES = 100


class StopAtReturn(callbacks.Callback):
    """Stops a run at a mean return of an evaluation or, without periodic evaluations, of training.

    The mean return of training covers the last 100 episodes of each task, all run by this process.
    """

    def __init__(self, mean_return: float):
        """Creates the callback; raises ConfigError unless `mean_return` is a number."""
        config_checks.check_number("mean_return of StopAtReturn", mean_return)
        self._mean_return = mean_return

    def on_start(self, run: callbacks.Run) -> None:
        """See `Callback`."""
        self._episodes: collections.Counter[str] = collections.Counter()  # count by task

    def on_episode(self, run: callbacks.Run, episode: episode_log.Row) -> None:
        """See `Callback`."""
        self._episodes[episode.task] += 1
        if run.config.run.evaluate_every_env_frames:
            return
        tasks = run.config.environment.tasks
        if all(self._episodes[task] >= _MIN_EPISODES for task in tasks):
            self._stop_at(run, run.mean_return)

    def on_evaluation(self, run: callbacks.Run, evaluation: callbacks.Evaluation) -> None:
        """See `Callback`."""
        self._stop_at(run, evaluation.mean_return)

    def _stop_at(self, run: callbacks.Run, mean_return: float) -> None:
        if mean_return >= self._mean_return:
            run.stop()


class StopAfter(callbacks.Callback):
    """Stops training some time after its start by this command; a resumed run starts at 0."""

    def __init__(self, hours: float = 0.0, seconds: float = 0.0):
        """Creates the callback; raises ConfigError unless the sum is a positive number."""
        for name, value in (("hours", hours), ("seconds", seconds)):
            config_checks.check_number(f"{name} of StopAfter", value)
        self._seconds = 3_600 * hours + seconds
        if not self._seconds > 0:
            raise errors.ConfigError(
                f"StopAfter must have hours or seconds above 0, got {hours} and {seconds}. Use "
                "e.g. StopAfter(hours=2)."
            )

    def on_start(self, run: callbacks.Run) -> None:
        """See `Callback`."""
        self._deadline = time.monotonic() + self._seconds

    def on_update(self, run: callbacks.Run, metrics: Mapping[str, float]) -> None:
        """See `Callback`."""
        if time.monotonic() >= self._deadline:
            run.stop()

    def on_episode(self, run: callbacks.Run, episode: episode_log.Row) -> None:
        """See `Callback`; before the first update there are episodes only."""
        self.on_update(run, {})
