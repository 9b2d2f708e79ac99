"""Reports of a run: its progress display, TensorBoard metrics and log of episodes."""

import collections
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from laser_tf.monitoring import episode_log, progress, tensorboard
from laser_tf.monitoring.metrics import FAULT_COUNTERS
from laser_tf.scores import aggregates, reference

ROWS = 200  # min rows of a run in TensorBoard, so that a short run has a curve, too
_PROGRESS_SECONDS = 0.5


class EpisodeReturns:
    """Raw returns and lengths of the last 100 training episodes of each task.

    Actors' threads add episodes while the learner's thread reads.
    """

    def __init__(self, suite: str, tasks: Sequence[str]):
        self._suite = suite
        self._episodes: dict[str, collections.deque[tuple[float, int]]] = {
            task: collections.deque(maxlen=100) for task in tasks
        }
        # Returns since the last call of `metrics`.
        self._new: dict[str, collections.deque[float]] = {
            task: collections.deque() for task in tasks
        }

    def add(self, episode: episode_log.Row, *, is_new: bool = True) -> None:
        """Adds a finished episode; `is_new` is False for episodes of an earlier command."""
        self._episodes[episode.task].append((episode.episode_return, episode.length))
        if is_new:
            self._new[episode.task].append(episode.episode_return)

    def clear(self) -> None:
        """Removes all episodes."""
        for task, episodes in self._episodes.items():
            episodes.clear()
            self._new[task].clear()

    def mean_return(self) -> float:
        """Returns the mean over tasks of the mean over episodes, NaN before the first episode."""
        return _mean(self._means(0).values())

    @property
    def num_episodes(self) -> int:
        """Number of episodes that `mean_return` covers, of all tasks together."""
        return sum(map(len, self._episodes.values()))

    def fitness(self) -> float:
        """Returns the score that a population compares, NaN before each task has an episode.

        It is the median of the normalised mean returns if references exist, else `mean_return`.
        """
        means = self._means(0)
        if any(map(math.isnan, means.values())):
            return math.nan  # A mean of other tasks, or a raw mean, cannot be compared.
        scores = reference.normalised_scores(self._suite, means)
        return aggregates.median_normalised(scores) if scores else _mean(means.values())

    def _means(self, index: int) -> dict[str, float]:
        """Returns each task's mean return (index 0) or length (1)."""
        return {
            task: _mean(episode[index] for episode in list(episodes))
            for task, episodes in self._episodes.items()
        }

    def metrics(self) -> dict[str, float]:
        """Returns the TensorBoard metrics of all tasks together and, if several, of each.

        `mean_return` covers the episodes since the last call.
        """
        returns, lengths = self._means(0), self._means(1)
        new = {
            task: _mean([values.popleft() for _ in range(len(values))])
            for task, values in self._new.items()
        }
        rows = {
            tensorboard.NEW_RETURN: _mean(new.values()),
            tensorboard.RETURN: _mean(returns.values()),
            "episode/mean_length_last_100": _mean(lengths.values()),
        }
        if len(self._episodes) == 1:
            return rows
        for task in self._episodes:
            rows[f"task/{task}/mean_return"] = new[task]
            rows[f"task/{task}/mean_return_last_100"] = returns[task]
            rows[f"task/{task}/mean_length_last_100"] = lengths[task]
        if scores := reference.normalised_scores(self._suite, returns):
            name = f"{reference.kind(self._suite)}_normalised"
            rows[f"episode/median_{name}"] = aggregates.median_normalised(scores)
            rows[f"episode/mean_capped_{name}"] = aggregates.mean_capped_normalised(scores)
        return rows


class Reporter:
    """Averages the learner's metrics and measures the pace between two reports.

    A row is due after `metrics_seconds` or `metrics_frames`. Before this command the run had
    trained for `env_frames` and `wall_seconds`. The pace of the first row includes a warm-up.
    Counters of faults are left out until they are not 0.
    """

    def __init__(
        self,
        show: Callable[[progress.Progress], None],
        writer: tensorboard.MetricsWriter,
        returns: EpisodeReturns,
        episodes: episode_log.EpisodeLog,
        metrics_seconds: float,
        metrics_frames: int,
        env_frames: int,
        wall_seconds: float = 0.0,
    ):
        self._wall_start = time.monotonic() - wall_seconds
        self._show = show
        self._writer = writer
        self._returns = returns
        self._episodes = episodes
        self._zero_counters = set(FAULT_COUNTERS)
        self._metrics_seconds = metrics_seconds
        self._metrics_frames = metrics_frames
        self._next_progress = 0.0
        self._pace = self._busy = 0.0
        self._policy_lag = math.nan
        self._start_period(env_frames)

    def _start_period(self, env_frames: int) -> None:
        self._period_start = time.monotonic()
        self._period_frames = env_frames
        self._busy_seconds = 0.0
        self._updates = 0
        self._values: dict[str, list[float]] = collections.defaultdict(list)

    def add_update(self, values: Mapping[str, float], busy_seconds: float) -> None:
        """Adds the metrics of an update and the seconds that the learner computed for it."""
        self._updates += 1
        self._busy_seconds += busy_seconds
        for name, value in values.items():
            self._values[name].append(float(value))

    def report(
        self,
        env_frames: int,
        replay_fill: Callable[[], float],
        metrics: Callable[[], Mapping[str, float]],
        last: bool = False,
    ) -> dict[str, float] | None:
        """Shows the progress and writes a row and new episodes, each if it is due or at the end.

        `metrics` returns values that need no average over updates. Returns the row, if any.
        """
        now = time.monotonic()
        seconds = max(now - self._period_start, 1e-9)
        if self._updates:  # Otherwise, a row was written at the last update.
            self._pace, self._busy = self._updates / seconds, self._busy_seconds / seconds
            self._policy_lag = _mean(self._values["replay/policy_lag_updates"])
        frames = env_frames - self._period_frames
        if last or now >= self._next_progress:
            self._next_progress = now + _PROGRESS_SECONDS
            mean_return, fill = self._returns.mean_return(), replay_fill()
            self._show(
                progress.Progress(
                    env_frames, self._pace, mean_return, fill, self._policy_lag, self._busy
                )
            )
        is_due = seconds >= self._metrics_seconds or frames >= self._metrics_frames
        if not self._updates or not (is_due or last):
            return None
        measured = metrics()
        self._zero_counters -= {name for name, value in measured.items() if value}
        row = {
            **{name: _mean(values) for name, values in self._values.items()},
            **{name: value for name, value in measured.items() if name not in self._zero_counters},
            **self._returns.metrics(),
            "run/wall_seconds": time.monotonic() - self._wall_start,
            "replay/fill": replay_fill(),
            "throughput/env_frames_per_second": frames / seconds,
            "throughput/updates_per_second": self._pace,
            "throughput/learner_busy_fraction": self._busy,
        }
        self._writer.write(env_frames, row)
        self._episodes.flush()
        self._start_period(env_frames)
        return row


def _mean(values: Iterable[float]) -> float:
    """Returns the mean without NaNs; NaN if there is no other value."""
    numbers = [value for value in values if not math.isnan(value)]
    return sum(numbers) / len(numbers) if numbers else math.nan
