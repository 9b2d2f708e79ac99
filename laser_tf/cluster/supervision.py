"""Supervision of roles: a role whose process dies or hangs gets a new process."""

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

import ray

from laser_tf import errors
from laser_tf.cluster import role, role_process, run_state

_MAX_ERROR_LENGTH = 400
_MAX_FAILURES = 4  # Successive failures, each after less than `_MIN_WORK_SECONDS` of work.
_MIN_WORK_SECONDS = 60.0
_RESTART_DELAY_SECONDS = 2.0
_HEARTBEAT_TIMEOUT_SECONDS = 120.0
_RESTORE_TIMEOUT_SECONDS = 3_600.0  # Without heartbeats; 5 GB of replay take two minutes.
_MAX_STEP_SECONDS = 60.0  # Of an environment, in addition to the role's own limit.
_STANDSTILL_SECONDS = 30.0  # Between two checks, after which this process hung.
_LOADING = (
    run_state.Status.STARTING,
    run_state.Status.WAITING_FOR_LOCK,
    run_state.Status.RESTORING,
    run_state.Status.STOPPED,
)


class RoleFailedError(errors.UserError):
    """A role that the run requires has failed for good."""


class RoleActor:
    """The process of a role: a Ray actor, which Ray itself does not restart."""

    def __init__(self, make: Callable[[], Any]):
        """Creates the view; `make` starts a `role_process.RoleProcess` and returns its handle."""
        self._make = make

    def start(self) -> None:
        """Starts a process and the role's work."""
        self._handle = self._make()
        self._work = self._handle.run.remote()

    @property
    def is_working(self) -> bool:
        """True until the work returns or fails."""
        return not ray.wait([self._work], timeout=0)[0]

    def result(self) -> bool:
        """Returns whether the work is complete.

        Raises:
          RayError: If the work or its process failed.
          GetTimeoutError: If the work has not ended.
        """
        return ray.get(self._work, timeout=0)

    def stop(self) -> None:
        """Requests the role to save its state and stop."""
        self._handle.stop.remote()

    def kill(self) -> None:
        """Kills the process, also one that hangs, which frees its resources."""
        with contextlib.suppress(ray.exceptions.RayError):  # Ray itself may have ended.
            ray.kill(self._handle)


class SupervisedRole:
    """A role that is restarted after it crashes or hangs, until it fails too often."""

    def __init__(
        self,
        spec: role.RoleSpec,
        actor: RoleActor,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Starts the role's work.

        Args:
          spec: The role.
          actor: Its process.
          clock: Returns seconds.
        """
        self.spec = spec
        self.name = spec.name
        self.restarts = 0
        self.is_done = False
        self.failure = ""  # The failure after which the role is not restarted.
        self.was_placed = False  # Whether it has ever had a process.
        self._actor = actor
        self._clock = clock
        self._failures = 0
        self._last_check = self._listening_since = clock()
        self._start()

    def _start(self) -> None:
        self._started = self._progressed = self._worked_since = self._clock()
        self.has_process = self._has_worked = False
        self._progress: tuple = ()
        self._restart_at: float | None = None
        self._actor.start()

    @property
    def is_over(self) -> bool:
        """True once the role's work is complete or has failed for good."""
        return self.is_done or bool(self.failure)

    @property
    def is_working(self) -> bool:
        """True until the work returns or fails."""
        return self._actor.is_working

    def status(self, heartbeat: run_state.Heartbeat | None) -> run_state.Status:
        """Returns the status of the role, given its last heartbeat."""
        if self.failure:
            return run_state.Status.FAILED
        if self.is_done:
            return run_state.Status.FINISHED
        if heartbeat is None or not self.has_process:  # The heartbeat is a previous process's.
            return run_state.Status.STARTING
        return heartbeat.status

    def check(self, heartbeat: run_state.Heartbeat | None) -> None:
        """Restarts the role if its work has ended, and kills its process if it hangs.

        Args:
          heartbeat: The last heartbeat; None before the first.

        Raises:
          RoleFailedError: If the role is required and has failed for good.
        """
        if self.is_over:
            return
        self._update_times(heartbeat)
        if self._restart_at is not None:
            if self._clock() >= self._restart_at:
                self._start()
        elif not self._actor.is_working:
            self._process_result()
        elif heartbeat:
            self._kill_if_hanging(heartbeat)

    def _update_times(self, heartbeat: run_state.Heartbeat | None) -> None:
        now = self._clock()
        # Without answers of the run's state, or while this process hung, silence means
        # nothing.
        if heartbeat is None or now - self._last_check > _STANDSTILL_SECONDS:
            self._listening_since = now
        self._last_check = now
        if heartbeat and heartbeat.age_seconds < now - self._started:  # Of the present process.
            self.has_process = self.was_placed = True
            self._has_worked = self._has_worked or heartbeat.status not in _LOADING
        if not self._has_worked:  # Loading TensorFlow or replay may take minutes.
            self._worked_since = now

    def _process_result(self) -> None:
        try:
            self.is_done = self._actor.result()
            if not self.is_done:
                self._restart("its work is not complete")
        except ray.exceptions.RayTaskError as error:
            self._process_error(error.cause)
        except ray.exceptions.RayError as error:
            self._count_failure(f"its process died ({errors.one_line(error, _MAX_ERROR_LENGTH)})")
        finally:
            self._actor.kill()  # Ends what remains of the process.

    def _process_error(self, error: Exception) -> None:
        message = errors.one_line(error, _MAX_ERROR_LENGTH)
        is_bad_input = self.spec.required and isinstance(error, errors.UserError)
        if is_bad_input or isinstance(error, role_process.MachineDiffersError):
            raise RoleFailedError(f"{self.name}: {message}")
        if isinstance(error, role.RestartError):
            self._restart(message)
        else:
            self._count_failure(message)

    def _count_failure(self, failure: str) -> None:
        worked_seconds = self._clock() - self._worked_since
        is_early = worked_seconds < _MIN_WORK_SECONDS
        self._failures = self._failures + 1 if is_early else 0
        if self._failures < _MAX_FAILURES:
            self._restart(failure)
            return
        self.failure = (
            f"{self.name} failed {self._failures} times in a row ({failure}); see its log in "
            f"{role_process.LOGS}/"
        )
        if self.spec.required:
            raise RoleFailedError(self.failure)
        logging.warning("%s. The other roles continue.", self.failure)

    def _restart(self, reason: str) -> None:
        logging.warning("Restarting %s: %s", self.name, reason)
        self.restarts += 1
        self._restart_at = self._clock() + _RESTART_DELAY_SECONDS

    def _kill_if_hanging(self, heartbeat: run_state.Heartbeat) -> None:
        now = self._clock()
        time_steps = heartbeat.metrics.get(role.TIME_STEPS)  # Only of roles that act.
        progress = heartbeat.process, heartbeat.status, heartbeat.detail, time_steps
        if progress != self._progress or not heartbeat.may_hang:
            self._progress, self._progressed = progress, now
        silent = min(heartbeat.age_seconds, now - max(self._started, self._listening_since))
        is_restoring = heartbeat.status is run_state.Status.RESTORING
        if silent > (_RESTORE_TIMEOUT_SECONDS if is_restoring else _HEARTBEAT_TIMEOUT_SECONDS):
            self._kill(heartbeat, f"no heartbeat for {silent:.0f} s")
        elif now - self._progressed > _MAX_STEP_SECONDS + self.spec.max_step_seconds:
            if time_steps == 0:  # Never a step: such failures count until the role fails.
                self._worked_since = now
            self._kill(heartbeat, f"no progress for {now - self._progressed:.0f} s")

    def _kill(self, heartbeat: run_state.Heartbeat, reason: str) -> None:
        logging.warning("Killing process %d of %s: %s", heartbeat.process, self.name, reason)
        self._actor.kill()

    def stop(self) -> bool:
        """Requests the role to save its state and stop; returns whether it had work to stop.

        A role without a process, e.g. while Ray waits for resources, is killed.
        """
        if not self.has_process:
            self.kill()
            return False
        self._actor.stop()
        return self.is_working

    def kill(self) -> None:
        """Ends the process without a restart."""
        self._actor.kill()

    @property
    def has_stopped_cleanly(self) -> bool:
        """Returns whether the work has ended without an error."""
        try:
            self._actor.result()
        except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError):
            return False
        return True
