"""A role of a run, and its view of the other roles."""

import abc
import contextlib
import pathlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import ray

from laser_tf import errors
from laser_tf.cluster import run_state
from laser_tf.environments import episode_statistics
from laser_tf.workdir import run_directory

TIME_STEPS = "time_steps"  # Metric of an acting role: steps that its environments have returned.
REPORT_TIMEOUT_SECONDS = 10.0
_RETRY_SECONDS = 0.2


class RestartError(RuntimeError):
    """The role cannot continue, but a restarted one can; not counted as a failure."""


class Context:
    """A role's connection to its run."""

    def __init__(self, name: str, workdir: pathlib.Path, state: Any):
        """Creates the context.

        Args:
          name: Name of the role.
          workdir: Directory of the run or the sweep.
          state: Handle of the `run_state.RunState`.
        """
        self.name = name
        self.workdir = workdir
        self.state = state
        self.stop = threading.Event()  # Set: save the state and stop.
        self.status = run_state.Status.STARTING
        self.detail = ""  # See `run_state.Heartbeat`.
        self.reported: run_state.Status | None = (
            None  # Last status that the run's state has received.
        )
        self.may_hang = False  # See `run_state.Heartbeat`.
        self.served_replay: str | None = None  # "host:port", if this role serves replay.
        self._replay_address = ""
        self._lock = threading.Lock()
        self._episodes: list[episode_statistics.Episode] = []

    def check_workdir(self, file: str) -> None:
        """Checks that this machine sees the run's directory.

        Args:
          file: Name of a file that the directory has.

        Raises:
          WorkdirError: If the file is missing.
        """
        if not (self.workdir / file).exists():
            raise run_directory.WorkdirError(
                f"--workdir must be on a file system that all machines share, got {self.workdir}, "
                f"which the machine of {self.name} does not see."
            )

    def add_episode(self, episode: episode_statistics.Episode) -> None:
        """Adds a finished episode to the next report."""
        with self._lock:
            self._episodes.append(episode)

    def take_episodes(self) -> list[episode_statistics.Episode]:
        """Returns and removes the episodes that were added since the last call."""
        with self._lock:
            episodes, self._episodes = self._episodes, []
        return episodes

    def announce(
        self, status: run_state.Status, timeout_seconds: float = REPORT_TIMEOUT_SECONDS
    ) -> None:
        """Sets the status and blocks until it is reported. Call before work that holds the GIL."""
        self.status = status
        deadline = time.monotonic() + timeout_seconds
        while self.reported != status and time.monotonic() < deadline:
            time.sleep(0.05)

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Reports SAVING, which supervision does not interrupt, while replay is saved."""
        before, self.status = self.status, run_state.Status.SAVING
        try:
            yield
        finally:
            self.status = before

    def call(self, method: str, *arguments: Any, timeout_seconds: float = 10.0) -> Any:
        """Calls a method of the run's state; returns None while it is restarted."""
        try:
            answer = getattr(self.state, method).remote(*arguments)
            return ray.get(answer, timeout=timeout_seconds)
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            return None

    def wait_for(self, method: str, *arguments: Any, what: str) -> Any:
        """Calls a method of the run's state until it returns a value.

        Args:
          method: Name of the method.
          *arguments: Arguments of the method.
          what: Noun phrase for the role's status, e.g. "replay".

        Raises:
          StoppedError: If the role is told to stop before.
        """
        self.status, self.detail = run_state.Status.WAITING, f"waiting for {what}"
        while not self.stop.is_set():
            answer = self.call(method, *arguments)
            if answer is not None:
                self.detail = ""
                return answer
            self.stop.wait(_RETRY_SECONDS)
        raise errors.StoppedError(f"{self.name} stopped while waiting for {what}")

    def find_replay(self) -> str:
        """Waits for replay; returns its "host:port".

        Raises:
          StoppedError: If the role is told to stop before.
        """
        self._replay_address = self.wait_for("replay_address", what="replay")
        return self._replay_address

    def newest_replay_address(self) -> str:
        """Returns the newest known "host:port" of replay. Call `find_replay` first."""
        self._replay_address = self.call("replay_address") or self._replay_address
        return self._replay_address


class Role(abc.ABC):
    """The work of a process for a run."""

    @abc.abstractmethod
    def run(self) -> run_state.Status:
        """Works until the context's `stop` is set or the work is complete.

        Returns:
          FINISHED if the work is complete, else STOPPED.

        Raises:
          RestartError: If only a restarted role can continue.
          UserError: For bad input.
        """

    @abc.abstractmethod
    def metrics(self) -> Mapping[str, float]:
        """Returns metrics to report, name -> value. Runs in another thread than `run`."""
