"""Callbacks of a run: code of users that observes a run and may stop it.

Without TensorFlow, so that modules of users are imported before it loads.
"""

import collections
import contextlib
import logging
import math
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from laser_tf.monitoring import episode_log
from laser_tf.training import run_config

if TYPE_CHECKING:
    import numpy as np


class Evaluation(NamedTuple):
    """Result of a periodic evaluation."""

    env_frames: int  # env frames behind the evaluated weights
    learner_updates: int  # updates behind the evaluated weights
    mean_return: float  # raw return, averaged over episodes, then over tasks
    summary: Mapping[str, Any]  # all results, see `evaluator.Evaluator.evaluate`
    weights: "Sequence[np.ndarray]"  # evaluated values of the agent's `acting_variables`


class Run:
    """The run that calls a callback, with its `config` and its run directory, `workdir`."""

    def __init__(
        self,
        config: run_config.RunConfig,
        workdir: pathlib.Path,
        counts: Callable[[], tuple[int, int]],
        mean_return: Callable[[], float],
        wall_seconds: float,
    ):
        """Creates the view of a run that has trained for `wall_seconds` before `start_clock`.

        `counts` returns env frames and learner updates.
        """
        self.config = config
        self.workdir = workdir
        self.stop_requested = False  # True once a callback has called `stop`.
        self._counts = counts
        self._mean_return = mean_return
        self._earlier_seconds = wall_seconds
        self._start = math.inf

    @property
    def env_frames(self) -> int:
        """Env frames learned from so far: agent steps times action repeat."""
        return self._counts()[0]

    @property
    def learner_updates(self) -> int:
        """Learner updates so far."""
        return self._counts()[1]

    @property
    def mean_return(self) -> float:
        """Mean over tasks of the mean raw return of a task's last 100 training episodes, or NaN."""
        return self._mean_return()

    @property
    def wall_seconds(self) -> float:
        """Seconds of training so far, of all processes that have trained the run."""
        return self._earlier_seconds + max(0.0, time.monotonic() - self._start)

    def start_clock(self) -> None:
        """Starts the clock of `wall_seconds`."""
        self._start = time.monotonic()

    def stop(self) -> None:
        """Stops, saves and evaluates the run after this update; the same command resumes it."""
        self.stop_requested = True


class Callback:
    """Base class of callbacks; each method may be overridden and does nothing by default.

    The learner's thread calls all methods, so that they need no locks, and training waits for them.
    An exception ends the run with its traceback after the run is saved.
    """

    def on_start(self, run: Run) -> None:
        """Called before training starts or resumes.

        An error ends the command before any training; the values of `--override` stay.
        """

    def on_update(self, run: Run, metrics: Mapping[str, float]) -> None:
        """Called after each learner update with its metrics, e.g. `loss/policy`."""

    def on_metrics(self, run: Run, metrics: Mapping[str, float]) -> None:
        """Called with each row of TensorBoard: averages since the last row, NaN if unknown."""

    def on_episode(self, run: Run, episode: episode_log.Row) -> None:
        """Called with each training episode, soon after its end."""

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        """Called with each periodic evaluation (`run.evaluate_every_env_frames`)."""

    def on_checkpoint(self, run: Run, path: pathlib.Path) -> None:
        """Called after a checkpoint of weights was saved; its files are `path` with suffixes.

        Not called after the save that follows an error.
        """

    def on_end(self, run: Run) -> None:
        """Called once the run is saved; also after an error, if `on_start` has returned."""


class Callbacks:
    """Calls the callbacks of a run, one after another."""

    def __init__(self, callbacks: Sequence[Callback], run: Run):
        self._callbacks = tuple(callbacks)
        self._run = run
        self._episodes: collections.deque[episode_log.Row] = collections.deque()
        self._stopped_by = ""  # Class of the callback that requested a stop first.

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Calls `on_start`, and `on_end` of all started callbacks after the `with` block.

        An error of the block is raised in any case; errors of `on_end` after it are logged.
        """
        ending = contextlib.ExitStack()  # Calls each `on_end`, even if one raises.
        try:
            for callback in self._callbacks:
                self._call(callback, "on_start")
                ending.callback(self._call, callback, "on_end")
            self._run.start_clock()
            yield
        except BaseException:
            try:
                ending.close()
            except Exception:
                logging.exception("A callback failed at the end of the run")
            raise
        ending.close()

    @property
    def observe_updates(self) -> bool:
        """True if a callback overrides `on_update`, so that it needs each update's metrics."""
        methods = (callback.on_update for callback in self._callbacks)
        return any(getattr(m, "__func__", m) is not Callback.on_update for m in methods)

    def call(self, hook: str, *arguments: Any) -> None:
        """Calls the method `hook` of each callback, with the run and further arguments."""
        for callback in self._callbacks:
            self._call(callback, hook, *arguments)

    def _call(self, callback: Callback, hook: str, *arguments: Any) -> None:
        getattr(callback, hook)(self._run, *arguments)
        if self._run.stop_requested and not self._stopped_by:
            self._stopped_by = type(callback).__name__

    def add_episode(self, episode: episode_log.Row) -> None:
        """Stores an episode for `report_episodes`; any thread may call it."""
        self._episodes.append(episode)

    def report_episodes(self) -> None:
        """Calls `on_episode` with the episodes since the last call."""
        for _ in range(len(self._episodes)):
            self.call("on_episode", self._episodes.popleft())

    def should_stop(self) -> bool:
        """Returns whether a callback has requested a stop, and logs its class."""
        if self._stopped_by:
            logging.info(
                "%s stops the run at %s frames; the same command resumes it",
                self._stopped_by, f"{self._run.env_frames:,}",
            )  # fmt: skip
        return bool(self._stopped_by)
