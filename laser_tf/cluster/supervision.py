"""Supervises roles: restarts a role whose process has died or hangs."""

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
_STEP_MARGIN_SECONDS = 60.0  # Added to the `max_step_seconds` of a role.
# A longer gap between checks means that the driver itself was suspended.
_STANDSTILL_SECONDS = 30.0
# A process that has reported only these statuses has not worked yet. It reports STOPPED even if its
# start fails.
_NOT_YET_WORKING = (
    run_state.Status.STARTING,
    run_state.Status.WAITING_FOR_LOCK,
    run_state.Status.RESTORING,
    run_state.Status.STOPPED,
)


class RoleFailedError(errors.UserError):
    """A role that the run requires has failed for good."""


class SupervisedRole:
    """A role that is restarted after it crashes or hangs, until it fails too often.

    Ray's own restarts are not used: a role may also hang, or fail without the end of its process,
    and only failures in quick succession count.
    """

    def __init__(
        self,
        spec: role.RoleSpec,
        make: Callable[[], Any],
        clock: Callable[[], float] = time.monotonic,
    ):
        """Starts the role's work; `make` starts a `role_process.RoleProcess` as a Ray actor."""
        self.spec = spec
        self.name = spec.name
        self.restarts = 0
        self.is_done = False  # Whether the role's work is complete.
        self.final_failure = ""  # The failure after which the role is not restarted.
        self.has_reported = False  # Whether the current process has sent a heartbeat.
        self._announced: set[str] = set()  # Announcements that were logged.
        self._make = make
        self._clock = clock
        self._failures = 0
        self._last_check = self._listening_since = clock()
        self._start()

    def _start(self) -> None:
        self._started_at = self._progressed_at = self._work_began_at = self._clock()
        self.has_reported = self._has_worked = False
        self._last_progress: tuple = ()
        self._restart_at: float | None = None
        self._handle = self._make()
        self._run_result = self._handle.run.remote()

    @property
    def is_terminal(self) -> bool:
        """True once the role's work is complete or has failed for good."""
        return self.is_done or bool(self.final_failure)

    @property
    def waiting_seconds(self) -> float:
        """Seconds for which the current process has sent no heartbeat: Ray may find no machine."""
        if self.has_reported or self.is_terminal:
            return 0.0
        return self._clock() - self._started_at

    @property
    def is_running(self) -> bool:
        """True until the work returns or fails."""
        return not ray.wait([self._run_result], timeout=0)[0]

    @property
    def has_unsaved_work(self) -> bool:
        """True if a process has worked, and the last one has not ended without an error."""
        if self.is_done or not (self.has_reported or self.restarts):
            return False
        try:
            ray.get(self._run_result, timeout=0)
        except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError):
            return True
        return False

    def status(self, heartbeat: run_state.Heartbeat | None) -> run_state.Status:
        """Returns the status of the role, given its last heartbeat."""
        if self.final_failure:
            return run_state.Status.FAILED
        if self.is_done:
            return run_state.Status.FINISHED
        if heartbeat is None or not self.has_reported:  # The heartbeat is a previous process's.
            return run_state.Status.STARTING
        return heartbeat.status

    def activity(self, heartbeat: run_state.Heartbeat | None) -> str:
        """Returns what the role does, in words: its status; before RUNNING rather its detail."""
        status = self.status(heartbeat)
        if heartbeat and status is heartbeat.status and status is not run_state.Status.RUNNING:
            return heartbeat.detail or status.value
        return status.value

    def check(self, heartbeat: run_state.Heartbeat | None) -> None:
        """Schedules a restart if the work ended before it was complete; kills a process that hangs.

        `heartbeat` is None before the first one and while `RunState` does not answer.

        Raises:
          RoleFailedError: If the role is required and has failed for good or raised a UserError, or
            if any role raised a MachineDiffersError.
        """
        if self.is_terminal:
            return
        self._log_announcements(heartbeat)
        self._update_times(heartbeat)
        if self._restart_at is not None:
            if self._clock() >= self._restart_at:
                self._start()
        elif not self.is_running:
            self._process_result()
        elif heartbeat and self.has_reported:  # Otherwise it is a previous process's.
            self._kill_if_hanging(heartbeat)

    def _log_announcements(self, heartbeat: run_state.Heartbeat | None) -> None:
        for text in heartbeat.announcements if heartbeat else ():
            if text not in self._announced:  # A restarted process repeats it.
                self._announced.add(text)
                logging.warning("%s: %s", self.name, text)

    def _update_times(self, heartbeat: run_state.Heartbeat | None) -> None:
        now = self._clock()
        # Missing heartbeats count only while `RunState` answers and the driver runs.
        if heartbeat is None or now - self._last_check > _STANDSTILL_SECONDS:
            self._listening_since = now
        self._last_check = now
        if heartbeat and heartbeat.age_seconds < now - self._started_at:  # Of the current process.
            self.has_reported = True
            self._has_worked = self._has_worked or heartbeat.status not in _NOT_YET_WORKING
        if not self._has_worked:  # Loading TensorFlow or replay may take minutes.
            self._work_began_at = now

    def _process_result(self) -> None:
        try:
            self.is_done = ray.get(self._run_result, timeout=0)
            if not self.is_done:
                self._schedule_restart("its work is not complete")
        except ray.exceptions.RayTaskError as error:
            self._process_error(error.cause)
        except ray.exceptions.RayError as error:
            self._count_failure(f"its process died ({errors.one_line(error, _MAX_ERROR_LENGTH)})")
        finally:
            self.kill()  # Ends what remains of the process.

    def _process_error(self, error: Exception) -> None:
        message = errors.one_line(error, _MAX_ERROR_LENGTH)
        ends_fleet = self.spec.is_required and isinstance(error, errors.UserError)
        if ends_fleet or isinstance(error, role_process.MachineDiffersError):
            raise RoleFailedError(f"{self.name}: {message}")
        if isinstance(error, role.RestartError):
            self._schedule_restart(message)
        else:
            self._count_failure(message)

    def _count_failure(self, failure: str) -> None:
        is_early = self._clock() - self._work_began_at < _MIN_WORK_SECONDS
        self._failures = self._failures + 1 if is_early else 0
        if self._failures < _MAX_FAILURES:
            self._schedule_restart(failure)
            return
        self.final_failure = (
            f"{self.name} failed {self._failures} times in a row ({failure}); see its log in "
            f"{role_process.LOGS}/"
        )
        if self.spec.is_required:
            raise RoleFailedError(self.final_failure)
        logging.warning("%s. The other roles continue.", self.final_failure)

    def _schedule_restart(self, reason: str) -> None:
        logging.warning("Restarting %s: %s", self.name, reason)
        self.restarts += 1
        self._restart_at = self._clock() + _RESTART_DELAY_SECONDS

    def _kill_if_hanging(self, heartbeat: run_state.Heartbeat) -> None:
        now = self._clock()
        env_calls = heartbeat.metrics.get(role.ENV_CALLS)  # Only of roles that act.
        progress = heartbeat.pid, heartbeat.status, heartbeat.detail, env_calls
        if progress != self._last_progress or not heartbeat.must_progress:
            self._last_progress, self._progressed_at = progress, now
        silent_seconds = min(heartbeat.age_seconds, now - self._listening_since)
        is_restoring = heartbeat.status is run_state.Status.RESTORING
        limit = _RESTORE_TIMEOUT_SECONDS if is_restoring else _HEARTBEAT_TIMEOUT_SECONDS
        if silent_seconds > limit:
            reason = f"no heartbeat for {silent_seconds:.0f} s"
        elif now - self._progressed_at > _STEP_MARGIN_SECONDS + self.spec.max_step_seconds:
            if env_calls == 0:  # No step has ever returned, so count this as an early failure.
                self._work_began_at = now
            reason = f"no progress for {now - self._progressed_at:.0f} s"
        else:
            return
        logging.warning("Killing process %d of %s: %s", heartbeat.pid, self.name, reason)
        self.kill()

    def request_stop(self) -> bool:
        """Requests the role to save its state and stop; returns whether it is still running.

        Kills a role that has sent no heartbeat, e.g. because Ray waits for resources.
        """
        if not self.has_reported:
            self.kill()
            return False
        self._handle.stop.remote()
        return self.is_running

    def kill(self) -> None:
        """Kills the process, also one that hangs, which frees its resources."""
        with contextlib.suppress(ray.exceptions.RayError):  # Ray itself may have ended.
            ray.kill(self._handle)
