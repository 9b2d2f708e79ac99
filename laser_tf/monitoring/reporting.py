"""What a run tells while it goes on: the progress display and TensorBoard."""

import collections
import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from laser_tf.environments import episode_statistics
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.scores import aggregates, reference

PROGRESS_SECONDS = 0.5
ROWS = 200  # of TensorBoard's in a whole run, at least: a curve however short the run is


class EpisodeReturns:
    """Raw returns of each task's last 100 training episodes; filled by actors, read by learners."""

    def __init__(self, suite: str, tasks: Sequence[str]):
        """Starts without episodes of the tasks of a suite."""
        self._suite = suite
        self._tasks = tuple(tasks)
        self._returns = [collections.deque(maxlen=100) for _ in tasks]
        self._lengths = [collections.deque(maxlen=100) for _ in tasks]

    def add(self, episode: episode_statistics.Episode) -> None:
        """Takes a finished episode."""
        self._returns[episode.task].append(episode.episode_return)
        self._lengths[episode.task].append(episode.length)

    def mean_return(self) -> float:
        """Mean over tasks of their last 100 returns' mean, NaN before the first."""
        return _mean([_mean(list(returns)) for returns in self._returns])

    def fitness(self) -> float:
        """The score that a population compares, NaN before each task has an episode.

        The median of the normalised mean returns where references exist, else `mean_return`.
        """
        means = self._mean_returns()
        if any(math.isnan(mean) for mean in means.values()):
            return math.nan  # a mean of other tasks, or a raw one, compares with nobody's
        scores = reference.normalised_scores(self._suite, means)
        return aggregates.median_normalised(scores) if scores else _mean(list(means.values()))

    def clear(self) -> None:
        """Forgets all episodes."""
        for returns, lengths in zip(self._returns, self._lengths, strict=True):
            returns.clear()
            lengths.clear()

    def _mean_returns(self) -> dict[str, float]:
        means = [_mean(list(returns)) for returns in self._returns]
        return dict(zip(self._tasks, means, strict=True))

    def metrics(self) -> dict[str, float]:
        """What TensorBoard gets: of all tasks together and, where there are several, of each."""
        returns = [_mean(list(returns)) for returns in self._returns]
        lengths = [_mean(list(lengths)) for lengths in self._lengths]
        rows = {
            tensorboard.RETURN: _mean(returns),
            "episode/mean_length_last_100": _mean(lengths),
        }
        if len(self._tasks) == 1:
            return rows
        for task, mean_return, length in zip(self._tasks, returns, lengths, strict=True):
            rows[f"task/{task}/mean_return_last_100"] = mean_return
            rows[f"task/{task}/mean_length_last_100"] = length
        scores = reference.normalised_scores(self._suite, self._mean_returns())
        if scores:
            kind = reference.kind(self._suite)
            rows[f"episode/median_{kind}_normalised"] = aggregates.median_normalised(scores)
            rows[f"episode/mean_capped_{kind}_normalised"] = aggregates.mean_capped_normalised(
                scores
            )
        return rows


class Display(Protocol):
    """What a reporter refreshes; see `progress.ProgressDisplay.update` for the numbers."""

    def update(
        self,
        *,
        env_frames: int,
        updates_per_second: float,
        mean_return: float,
        replay_fill: float,
        policy_lag: float,
        learner_busy: float,
    ) -> None:
        """Shows the newest numbers."""


class Reporter:
    """Averages the learner's metrics and measures the parts' pace between two reports."""

    def __init__(
        self,
        display: Display,
        writer: tensorboard.MetricsWriter,
        returns: EpisodeReturns,
        episodes: episode_log.EpisodeLog,
        metrics_seconds: float,
        metrics_frames: int,
        env_frames: int,
        wall_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Creates the reporter; the first period starts now.

        Args:
          display: of the progress.
          writer: of TensorBoard's rows.
          returns: of training episodes.
          episodes: their log.
          metrics_seconds: from one row to the next, at most.
          metrics_frames: env frames from one row to the next, at most.
          env_frames: learned from when the command began; the first row's pace is since then, a
            warm-up included.
          wall_seconds: Seconds of training before this command.
          clock: Returns monotonic seconds.
        """
        self._clock = clock
        self._wall_start = clock() - wall_seconds
        self._display = display
        self._writer = writer
        self._returns = returns
        self._episodes = episodes
        self._metrics_seconds = metrics_seconds
        self._metrics_frames = metrics_frames
        self._next_progress = self._clock()
        self._start_period(env_frames)

    def _start_period(self, env_frames: int) -> None:
        self._period_start = self._clock()
        self._period_frames = env_frames
        self._busy_seconds = 0.0
        self._updates = 0
        self._values = collections.defaultdict(list)

    def add_update(self, values: dict[str, float], busy_seconds: float) -> None:
        """Takes an update's metrics and how long the learner computed for it."""
        self._updates += 1
        self._busy_seconds += busy_seconds
        for name, value in values.items():
            self._values[name].append(float(value))

    def report(
        self,
        env_frames: int,
        replay_fill: Callable[[], float],
        throughput: Callable[[], dict[str, float]],
        last: bool = False,
    ) -> None:
        """Refreshes the display; writes a row to TensorBoard and new episodes; each when due.

        Args:
          env_frames: learned from so far.
          replay_fill: returns the used share of replay's capacity.
          throughput: returns the pace of the actor's parts, and what parts count.
          last: whether nothing more will come, so that both are due.
        """
        now = self._clock()
        seconds = max(now - self._period_start, 1e-9)
        busy = self._busy_seconds / seconds
        if last or now >= self._next_progress:
            self._next_progress = now + PROGRESS_SECONDS
            self._display.update(
                env_frames=env_frames,
                updates_per_second=self._updates / seconds,
                mean_return=self._returns.mean_return(),
                replay_fill=replay_fill(),
                policy_lag=_mean(self._values["replay/policy_lag_updates"]),
                learner_busy=busy,
            )
        is_due = (
            seconds >= self._metrics_seconds
            or env_frames - self._period_frames >= self._metrics_frames
        )
        if is_due or (last and self._updates):
            self._write(env_frames, replay_fill(), throughput(), seconds, busy)
            self._start_period(env_frames)

    def _write(
        self,
        env_frames: int,
        replay_fill: float,
        throughput: dict[str, float],
        seconds: float,
        busy: float,
    ) -> None:
        frames = env_frames - self._period_frames
        row = {name: _mean(values) for name, values in self._values.items()}
        row |= (
            throughput
            | self._returns.metrics()
            | {
                "run/wall_seconds": self._clock() - self._wall_start,
                "replay/fill": replay_fill,
                "throughput/env_frames_per_second": frames / seconds,
                "throughput/updates_per_second": self._updates / seconds,
                "throughput/learner_busy_fraction": busy,
            }
        )
        self._writer.write(env_frames, row)
        self._episodes.flush()


def _mean(values: list[float]) -> float:
    """Mean without NaNs; NaN where nothing else is there."""
    numbers = [value for value in values if not math.isnan(value)]
    return sum(numbers) / len(numbers) if numbers else math.nan
