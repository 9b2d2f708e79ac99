"""Role, its RoleSpec for the driver, and the RoleContext that connects it to its run."""

import abc
import collections
import contextlib
import dataclasses
import enum
import os
import pathlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ray

from laser_tf import errors
from laser_tf.cluster import run_state
from laser_tf.environments import episode_statistics
from laser_tf.training import run_config
from laser_tf.workdir import lock, run_directory

# Metric: number of calls of reset and step; a call covers all environments.
ENV_CALLS = "env_calls"
_CALL_TIMEOUT_SECONDS = 10.0
_RETRY_SECONDS = 0.2


class StopStage(enum.IntEnum):
    """The order in which roles stop: each before the roles that it needs."""

    ACTING = 0  # Actors and the evaluator, which save nothing.
    LEARNERS = 1
    REPLAY = 2


@dataclasses.dataclass(frozen=True)
class RoleSpec:
    """A role of a fleet and the resources of its process."""

    name: str
    role_class: str  # "module:class"; only the role's process imports the module.
    arguments: Mapping[str, Any]  # Arguments of the class, after the context.
    stop_stage: StopStage
    stop_seconds: float = 180.0  # Time limit for the role to save its state; 0: killed at once.
    is_required: bool = False  # Whether the fleet fails if the role fails.
    group: str = ""  # The fleet fails if all roles of a group fail.
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    is_local: bool = False  # Whether the driver's machine is preferred.
    max_step_seconds: float = 0.0  # Max duration of an environment step; supervision adds 60 s.
    num_threads: int = 0  # Threads of TensorFlow; 0: TensorFlow's default.
    cores_shared_by: int = 0  # Roles that share all cores equally; 0: use `num_threads`.


class RestartError(RuntimeError):
    """The role cannot continue, but a restarted one can; not counted as a failure."""


def call(shared_state: Any, method: str, *arguments: Any) -> Any:
    """Returns the answer of a method of `run_state.RunState`; None if it died or timed out."""
    try:
        return ray.get(
            getattr(shared_state, method).remote(*arguments), timeout=_CALL_TIMEOUT_SECONDS
        )
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return None


class RoleContext:
    """A role's connection to its run or sweep."""

    def __init__(self, name: str, workdir: pathlib.Path, shared_state: Any):
        self.name = name
        self.workdir = workdir  # Of the run, or of the sweep.
        self.shared_state = shared_state  # Handle of the `run_state.RunState`.
        self.stop_requested = threading.Event()  # Set: save the state and stop.
        self.status = run_state.Status.STARTING
        self.detail = ""  # See `run_state.Heartbeat`.
        self.must_progress = False  # See `run_state.Heartbeat`.
        self.served_replay_address: str | None = None  # "host:port", if this role serves replay.
        self.metrics: Callable[[], Mapping[str, float]] = dict  # Called for each heartbeat.
        self.announcements: list[str] = []  # See `run_state.Heartbeat`.
        # Finished episodes for the next heartbeat.
        self.episodes: collections.deque[episode_statistics.Episode] = collections.deque()
        self._replay_address = ""
        self._reporting = threading.Lock()

    def check_workdir(self) -> None:
        """Raises WorkdirError if this machine does not see the directory that the driver locks."""
        if not (self.workdir / lock.FILE).exists():
            raise run_directory.WorkdirError(
                f"--workdir must be on a file system that all machines share, got {self.workdir}, "
                f"which the machine of {self.name} does not see."
            )

    def acquire_lock(self) -> None:
        """Locks the role's own lock file; the driver holds the lock of the run's directory.

        Blocks while an earlier process of this role, even one that a previous driver started,
        saves its state. Raises InUseError after an hour; see `check_workdir`, too.
        """
        self.check_workdir()
        self.status = run_state.Status.WAITING_FOR_LOCK
        lock.acquire(self.workdir / f"{self.name}_lock", lock.SAVE_TIMEOUT_SECONDS)
        self.status = run_state.Status.STARTING

    @property
    def traceback_directory(self) -> pathlib.Path | None:
        """The run's directory, if this machine sees it."""
        return self.workdir if self.workdir.is_dir() else None

    def report(self) -> None:
        """Sends a heartbeat."""
        with self._reporting:
            metrics = self.metrics()
            heartbeat = run_state.Heartbeat(
                socket.gethostname(),
                os.getpid(),
                self.status,
                self.detail,
                self.must_progress,
                metrics,
                announcements=tuple(self.announcements),
            )
            episodes = [self.episodes.popleft() for _ in range(len(self.episodes))]
            self.call("report", self.name, heartbeat, episodes, self.served_replay_address)

    def announce(self, status: run_state.Status) -> None:
        """Sets the status and reports it. Call before work that holds the GIL."""
        self.status = status
        self.report()

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Sets the status to SAVING in the context; the fleet waits longer for such roles."""
        before, self.status = self.status, run_state.Status.SAVING
        try:
            yield
        finally:
            self.status = before

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the run's shared state; see `role.call`."""
        return call(self.shared_state, method, *arguments)

    def wait_for(self, method: str, *arguments: Any, what: str) -> Any:
        """Calls a method of the run's shared state until it returns a value.

        The detail of heartbeats is "waiting for <what>" until then. A stop raises StoppedError.
        """
        self.status, self.detail = run_state.Status.WAITING, f"waiting for {what}"
        while (answer := self.call(method, *arguments)) is None:
            if self.stop_requested.wait(_RETRY_SECONDS):
                raise errors.StoppedError(f"{self.name} stopped while waiting for {what}")
        self.detail = ""
        return answer

    def find_replay_address(self) -> str:
        """Returns the newest known "host:port" of replay; waits for the first, see `wait_for`."""
        known = self.call("replay_address") or self._replay_address
        self._replay_address = known or self.wait_for("replay_address", what="replay")
        return self._replay_address


class Role(abc.ABC):
    """The work of a process for a run."""

    def __init__(self, context: RoleContext, config: run_config.RunConfig):
        self._context = context
        self._config = config  # Of the run, or of a member of the sweep.

    @abc.abstractmethod
    def run(self) -> bool:
        """Works until the context's `stop_requested` is set; returns whether the work is complete.

        Raises:
          RestartError: If only a restarted role can continue.
          UserError: If the user has to act. If the role is required, this error ends the fleet.
        """

    @abc.abstractmethod
    def metrics(self) -> Mapping[str, float]:
        """Returns metrics to report, name -> value. Runs in another thread than `run`."""
