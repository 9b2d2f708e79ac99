"""Roles that are kept alive: Ray starts their processes again, this begins their work again."""

import contextlib
import logging
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

import ray
from ray.util import scheduling_strategies

from laser_tf import errors
from laser_tf.cluster import hub, role_process
from laser_tf.host import kept_command

_YOUNG_SECONDS = 60.0  # of work; a process that ends before that has not recovered
_MOST_FAILURES = 4  # in a row, each time young
_DELAY_SECONDS = 2.0  # before a role that has failed begins again
_LEAVING_SECONDS = 30.0  # for the process that has failed to end, before that
_SILENT_SECONDS = 120.0  # without a report, after which a process is killed
_RESTORING_SECONDS = 3_600.0  # the same, of one that restores replay: 5 GB take two minutes
_GAP_SECONDS = 30.0  # between two looks, after which this process has stood still
_MOST_SAID = 400  # characters, of an error
_STUCK_SECONDS = 60.0  # in one step of its environments, after which it is
_NO_WORK = (role_process.STARTS, role_process.FOLLOWS, role_process.RESTORES, role_process.ENDED)


class RoleFailedError(errors.UserError):
    """A role that a run cannot do without has failed for good."""


class Supervised:
    """A role in a process of its own."""

    def __init__(
        self,
        name: str,
        actor: Any,
        versions: Mapping[str, str],
        *,
        is_vital: bool,
        reply_seconds: float = 0.0,
    ):
        """Begins the role's work.

        Args:
          name: of the role.
          actor: handle of its `role_process.RoleProcess`.
          versions: see `role_process.RoleProcess.run`.
          is_vital: whether the run ends with it.
          reply_seconds: that a step of its environments may take, beside what is always waited for.
        """
        self.name = name
        self.is_vital = is_vital
        self.restarts = 0
        self.is_done = False  # its work
        self.has_failed = False  # for good
        self.failure = ""  # the last one, in words
        self._actor = actor
        self._versions = dict(versions)
        self._stuck_seconds = reply_seconds + _STUCK_SECONDS
        self._failures = 0
        self._looked = self._listening = time.monotonic()
        self.is_there = False  # whether the process that it began in last has said something
        self._begin()

    def _begin(self) -> None:
        self._began = self._progressed = self._loaded = time.monotonic()
        self.is_there = self._has_worked = False
        self._progress: tuple = ()
        self._begin_at: float | None = None
        self._leaving: Any = None  # reference to what the process never answers: that it leaves
        self._work = self._actor.run.remote(self._versions)

    def watch(self, said: hub.Health | None) -> None:
        """Begins the work again where it has ended, and kills a process that is stuck.

        Args:
          said: how the role was when it last reported; None: it never has.

        Raises:
          RoleFailedError: if it is vital and has failed for good.
          LostError: if Ray has gone.
        """
        if self.is_done or self.has_failed:
            return
        self._note_silence(said)
        self._note_work(said)
        if self._begin_at is not None:
            if time.monotonic() >= self._begin_at and self._has_left(self._begin_at):
                self._begin()
        elif ray.wait([self._work], timeout=0)[0]:
            self._end()
        elif said:
            self._kill_if_stuck(said)

    def _note_silence(self, said: hub.Health | None) -> None:
        """While the hub or this process stood still nobody was heard, which is no role's fault."""
        now = time.monotonic()
        if said is None or now - self._looked > _GAP_SECONDS:
            self._listening = now
        self._looked = now

    def _note_work(self, said: hub.Health | None) -> None:
        """Loading TensorFlow, or replay, is no work yet, and may take minutes."""
        now = time.monotonic()
        if said and said.seconds < now - self._began:  # else it was said by a process before
            self.is_there = True
            self._has_worked = self._has_worked or said.state not in _NO_WORK
        if not self._has_worked:
            self._loaded = now

    def _end(self) -> None:
        try:
            reason = ray.get(self._work)
            self.is_done = reason is None
            if reason:  # a signal, as from a machine that is about to go, or another role's death
                self._leave()
                self._begin_again(reason)
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            is_final = isinstance(cause, role_process.MachineDiffersError) or (
                self.is_vital and isinstance(cause, errors.UserError)
            )
            if is_final:
                raise RoleFailedError(
                    f"{self.name}: {errors.one_line(cause, _MOST_SAID)}"
                ) from None
            self._leave()
            self._note_failure(errors.one_line(cause, _MOST_SAID))
        except ray.exceptions.ActorDiedError as error:
            # Ray starts it again without end, unless Ray itself has gone.
            raise kept_command.LostError(errors.one_line(error, _MOST_SAID)) from None
        except ray.exceptions.RayError as error:
            self._note_death(type(error).__name__)

    def _leave(self) -> None:
        """Ends what is left of its process."""
        self._leaving = self._actor.leave.remote()

    def _has_left(self, since: float) -> bool:
        """Work that came before that would be lost with the process, and counted as a failure."""
        if self._leaving is None or time.monotonic() >= since + _LEAVING_SECONDS:
            return True
        return bool(ray.wait([self._leaving], timeout=0)[0])

    def _note_death(self, error: str) -> None:
        if self.is_there:
            self._note_failure(f"its process has died ({error})")
        else:  # Ray, which is starting the process again, has refused the work
            self._begin_at = time.monotonic() + _DELAY_SECONDS

    def _note_failure(self, failure: str) -> None:
        young = time.monotonic() - self._loaded < _YOUNG_SECONDS
        self._failures = self._failures + 1 if young else 0
        if self._failures < _MOST_FAILURES:
            self._begin_again(failure)
            return
        self.has_failed = True
        self.failure = (
            f"{self.name} failed {self._failures} times at once ({failure}); see its log in "
            f"{role_process.LOGS}/"
        )
        if self.is_vital:
            raise RoleFailedError(self.failure)
        logging.warning("%s: it is given up, the others go on", self.failure)

    def _begin_again(self, reason: str) -> None:
        logging.warning("%s: %s; it begins again", self.name, reason)
        self.restarts += 1
        self._begin_at = time.monotonic() + _DELAY_SECONDS

    def _kill_if_stuck(self, said: hub.Health) -> None:
        now = time.monotonic()
        progress = said.process, said.state, said.metrics.get(role_process.TIME_STEPS)
        if progress != self._progress or not said.is_at_risk:
            self._progress, self._progressed = progress, now
        listened = now - max(self._began, self._listening)
        is_restoring = said.state == role_process.RESTORES
        longest = _RESTORING_SECONDS if is_restoring else _SILENT_SECONDS
        if min(said.seconds, listened) > longest:
            self._kill_process(said, f"has said nothing for {said.seconds:.0f} s")
        elif now - self._progressed > self._stuck_seconds:
            if said.metrics.get(role_process.TIME_STEPS) == 0:  # of one that acts
                self._loaded = now  # it has not worked yet: one of the failures that are the end
            self._kill_process(said, f"{said.state}, for {now - self._progressed:.0f} s")

    def _kill_process(self, said: hub.Health, reason: str) -> None:
        logging.warning("%s %s: its process is killed", self.name, reason)
        self._began = self._progressed = time.monotonic()
        # Ray would ask the process to end itself, which a stopped one does not do.
        place = scheduling_strategies.NodeAffinitySchedulingStrategy(said.node, soft=False)
        kill = ray.remote(num_cpus=0, max_retries=0)(os.kill).options(scheduling_strategy=place)
        kill.remote(said.process, signal.SIGKILL)

    def stop(self) -> bool:
        """Asks the role to save what is to be saved, and to end; returns whether it is asked.

        One whose process has said nothing yet, perhaps waiting for a machine with room, is ended.
        """
        is_asked = self.is_there and self.is_working
        if self.is_there:
            self._actor.stop.remote()
        else:
            self.release()
        return is_asked

    def release(self) -> None:
        """Ends its process, which has no more to do, without asking."""
        with contextlib.suppress(ray.exceptions.RayError):  # it has gone with Ray itself
            ray.kill(self._actor, no_restart=True)

    def has_ended_well(self) -> bool:
        """Whether its work has ended, and in no error."""
        try:
            ray.get(self._work, timeout=0)
        except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError):
            return False
        return True

    @property
    def is_working(self) -> bool:
        """Whether its work has neither ended nor failed."""
        return not ray.wait([self._work], timeout=0)[0]
