"""Supervision of roles: Ray restarts their processes, and this module restarts their work."""

import dataclasses
import logging
import time
from collections.abc import Callable

import ray

from laser_tf import errors
from laser_tf.cluster import role, role_actor, role_process, run_state

_MAX_ERROR_LENGTH = 400
_LOADING = (
    run_state.Status.STARTING,
    run_state.Status.WAITING_FOR_LOCK,
    run_state.Status.RESTORING,
    run_state.Status.STOPPED,
)


class RoleFailedError(errors.UserError):
    """A role that the run requires has failed for good."""


class RayLostError(errors.UserError):
    """Ray has ended; the same command resumes the run."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """When supervision restarts a role and when it gives up."""

    max_failures: int = 4  # Successive failures, each after less than `min_work_seconds` of work.
    min_work_seconds: float = 60.0
    restart_delay_seconds: float = 2.0
    exit_timeout_seconds: float = 30.0  # For a failed process to end before its role restarts.
    heartbeat_timeout_seconds: float = 120.0
    restore_timeout_seconds: float = 3_600.0  # Without heartbeats; 5 GB of replay take two minutes.
    max_step_seconds: float = 60.0  # Of an environment, in addition to the role's own limit.
    standstill_seconds: float = 30.0  # Between two checks, after which this process stood still.


class SupervisedRole:
    """A role that is restarted after it crashes or hangs, until it fails too often."""

    def __init__(
        self,
        name: str,
        actor: role_actor.RoleActor,
        *,
        required: bool,
        max_step_seconds: float = 0.0,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Starts the role's work.

        Args:
          name: Name of the role.
          actor: Its Ray actor.
          required: Whether the run ends if the role fails.
          max_step_seconds: Time limit of the environment, in addition to `limits`.
          limits: Time limits.
          clock: Returns seconds.
        """
        self.name = name
        self.required = required
        self.restarts = 0
        self.is_done = False
        self.failure = ""  # The failure that ended the role.
        self._actor = actor
        self._limits = limits or Limits()
        self._step_seconds = max_step_seconds + self._limits.max_step_seconds
        self._clock = clock
        self._failures = 0
        self._last_check = self._listening_since = clock()
        self._start()

    def _start(self) -> None:
        now = self._clock()
        self._started = self._progressed = self._worked_since = now
        self.has_process = self._has_worked = False
        self._progress: tuple = ()
        self._restart_at: float | None = None
        self._actor.start()

    @property
    def has_failed(self) -> bool:
        """Whether the role failed too often and is not restarted again."""
        return bool(self.failure)

    @property
    def is_over(self) -> bool:
        """Whether the role's work is complete or has failed for good."""
        return self.is_done or self.has_failed

    @property
    def is_working(self) -> bool:
        """Whether the work has neither returned nor failed."""
        return self._actor.is_working

    def status(self, heartbeat: run_state.Heartbeat | None) -> run_state.Status:
        """Returns the status of the role, given its last heartbeat."""
        if self.has_failed:
            return run_state.Status.FAILED
        if self.is_done:
            return run_state.Status.FINISHED
        if heartbeat is None or not self.has_process:  # The heartbeat is a previous process's.
            return run_state.Status.STARTING
        return heartbeat.status

    def check(self, heartbeat: run_state.Heartbeat | None) -> None:
        """Restarts the work if it has ended, and kills the process if it hangs.

        Args:
          heartbeat: The last heartbeat; None before the first.

        Raises:
          RoleFailedError: If the role is required and has failed for good.
          RayLostError: If Ray has ended.
        """
        if self.is_over:
            return
        self._update_times(heartbeat)
        if self._restart_at is not None:
            self._start_when_due()
        elif not self._actor.is_working:
            self._process_result()
        elif heartbeat:
            self._kill_if_hanging(heartbeat)

    def _update_times(self, heartbeat: run_state.Heartbeat | None) -> None:
        now = self._clock()
        # Without answers of the run's state, or while this process stood still, silence means
        # nothing.
        if heartbeat is None or now - self._last_check > self._limits.standstill_seconds:
            self._listening_since = now
        self._last_check = now
        if heartbeat and heartbeat.age_seconds < now - self._started:  # Of the present process.
            self.has_process = True
            self._has_worked = self._has_worked or heartbeat.status not in _LOADING
        if not self._has_worked:  # Loading TensorFlow or replay may take minutes.
            self._worked_since = now

    def _start_when_due(self) -> None:
        now = self._clock()
        is_late = now >= self._restart_at + self._limits.exit_timeout_seconds
        # Work that starts in a process that exits would be lost and count as a failure.
        if now >= self._restart_at and (self._actor.has_exited or is_late):
            self._start()

    def _process_result(self) -> None:
        try:
            self.is_done = self._actor.result() is run_state.Status.FINISHED
            if not self.is_done:
                self._actor.exit()
                self._restart("was stopped")  # By a signal, e.g. because its machine shuts down.
        except ray.exceptions.RayTaskError as error:
            self._process_error(error.cause)
        except ray.exceptions.ActorDiedError as error:  # Ray restarts actors without limit.
            raise RayLostError(
                f"Ray has ended ({errors.one_line(error, _MAX_ERROR_LENGTH)}). Run the same "
                "command again: it resumes from the last checkpoints."
            ) from None
        except ray.exceptions.RayError as error:
            if self.has_process:
                self._count_failure(f"its process died ({type(error).__name__})")
            else:  # Ray still restarts the process.
                self._restart_at = self._clock() + self._limits.restart_delay_seconds

    def _process_error(self, error: Exception) -> None:
        message = errors.one_line(error, _MAX_ERROR_LENGTH)
        is_bad_input = self.required and isinstance(error, errors.UserError)
        if is_bad_input or isinstance(error, role_process.MachineDiffersError):
            raise RoleFailedError(f"{self.name}: {message}")
        self._actor.exit()
        if isinstance(error, role.RestartError):
            self._restart(message)
        else:
            self._count_failure(message)

    def _count_failure(self, failure: str) -> None:
        worked_seconds = self._clock() - self._worked_since
        is_early = worked_seconds < self._limits.min_work_seconds
        self._failures = self._failures + 1 if is_early else 0
        if self._failures < self._limits.max_failures:
            self._restart(failure)
            return
        self.failure = (
            f"{self.name} failed {self._failures} times in a row ({failure}); see its log in "
            f"{role_process.LOGS}/"
        )
        if self.required:
            raise RoleFailedError(self.failure)
        logging.warning("%s. The other roles continue.", self.failure)

    def _restart(self, reason: str) -> None:
        logging.warning("Restarting %s: %s", self.name, reason)
        self.restarts += 1
        self._restart_at = self._clock() + self._limits.restart_delay_seconds

    def _kill_if_hanging(self, heartbeat: run_state.Heartbeat) -> None:
        now = self._clock()
        time_steps = heartbeat.metrics.get(role.TIME_STEPS)  # Only of roles that act.
        progress = heartbeat.process, heartbeat.status, heartbeat.detail, time_steps
        if progress != self._progress or not heartbeat.may_hang:
            self._progress, self._progressed = progress, now
        silent = min(heartbeat.age_seconds, now - max(self._started, self._listening_since))
        is_restoring = heartbeat.status is run_state.Status.RESTORING
        limits = self._limits
        if silent > (
            limits.restore_timeout_seconds if is_restoring else limits.heartbeat_timeout_seconds
        ):
            self._kill(heartbeat, f"no heartbeat for {silent:.0f} s")
        elif now - self._progressed > self._step_seconds:
            if time_steps == 0:  # Never a step: such failures count until the role fails.
                self._worked_since = now
            self._kill(heartbeat, f"no progress for {now - self._progressed:.0f} s")

    def _kill(self, heartbeat: run_state.Heartbeat, reason: str) -> None:
        logging.warning("Killing process %d of %s: %s", heartbeat.process, self.name, reason)
        self._started = self._progressed = self._clock()
        self._actor.kill(heartbeat)

    def stop(self) -> bool:
        """Tells the role to save its state and stop; returns whether it had work to stop.

        Without a process, e.g. while Ray waits for resources, the role is released.
        """
        was_working = self.has_process and self.is_working
        if self.has_process:
            self._actor.stop()
        else:
            self.release()
        return was_working

    def release(self) -> None:
        """Ends the process without a restart, which frees its resources."""
        self._actor.release()

    @property
    def has_stopped_cleanly(self) -> bool:
        """Whether the work has returned without an error."""
        try:
            self._actor.result()
        except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError):
            return False
        return True
