"""The processes of a run or a sweep: started, supervised and stopped. Without TensorFlow."""

import collections
import itertools
import logging
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from laser_tf.cluster import (
    machines,
    role_actor,
    role_process,
    role_spec,
    run_state,
    supervision,
)
from laser_tf.host import interruption
from laser_tf.training import cluster_config
from laser_tf.workdir import atomic, versions

ROLES = "roles.csv"  # In the directory of a run or a sweep; one row for each role.
_HEADER = "role,status,detail,host,process,memory_mebibytes,silent_seconds,restarts"
_CHECK_PERIOD_SECONDS = 0.5
_SAVING_SECONDS = 120.0  # More time since the last report of SAVING.
_SAVING_PERIOD_SECONDS = 2.0


class Job(Protocol):
    """The work of a fleet: a run or a sweep."""

    def start(self) -> None:
        """Starts processes that the roles need. Called before the roles start."""

    def is_finished(self, roles: Mapping[str, supervision.SupervisedRole]) -> bool:
        """Returns whether the fleet's work is complete."""

    def update(
        self,
        roles: Mapping[str, supervision.SupervisedRole],
        heartbeats: Mapping[str, run_state.Heartbeat],
    ) -> None:
        """Processes the newest state of the roles, e.g. shows it."""

    def finish(self) -> None:
        """Completes the work after `is_finished`.

        Raises:
          UserError: If a part of the work has failed.
        """


class Fleet:
    """Roles in processes of Ray, on one machine or on several."""

    def __init__(
        self,
        job: Job,
        specs: Sequence[role_spec.RoleSpec],
        workdir: pathlib.Path,
        cluster: cluster_config.ClusterConfig,
    ):
        """Starts all roles; call it in a `ray_session.session`.

        Args:
          job: The work of the roles.
          specs: The roles.
          workdir: Directory of the run or the sweep, opened.
          cluster: Configuration of the cluster.

        Raises:
          InUseError: If another fleet of this cluster uses the directory.
        """
        self._workdir = workdir
        (workdir / role_process.LOGS).mkdir(exist_ok=True)
        self._state = role_actor.start_state(workdir)
        self._job = job
        job.start()
        self._specs = {spec.name: spec for spec in specs}
        versions_here = versions.of_machine()
        self.roles = {spec.name: self._start(spec, versions_here) for spec in specs}
        # An own Ray has room for all roles.
        self._placement = machines.Placement(cluster.wait_minutes) if cluster.address else None
        self._head = machines.HeadMonitor()
        self._unsaved: list[str] = []

    def _start(
        self, spec: role_spec.RoleSpec, versions_here: Mapping[str, str]
    ) -> supervision.SupervisedRole:
        make = role_actor.restarted(
            role_process.RoleProcess,
            concurrency_groups={role_process.CONTROL: 2},
            name=spec.name,
            num_cpus=spec.num_cpus,
            num_gpus=spec.num_gpus,
            scheduling_strategy=(role_actor.on_this_node(soft=True) if spec.is_local else "SPREAD"),
        )
        handle = make.remote(
            spec.name, f"laser_tf.cluster.{spec.role_class}", spec.arguments, self._workdir,
            self._state, _thread_variables(spec),
        )  # fmt: skip
        return supervision.SupervisedRole(
            spec.name,
            role_actor.RoleActor(handle, versions_here),
            required=spec.required,
            max_step_seconds=spec.max_step_seconds,
        )

    def run(self, interrupted: interruption.Interruption) -> None:
        """Supervises the roles until the job is finished or the user interrupts, then stops them.

        Args:
          interrupted: Signals that the process has received.

        Raises:
          RoleFailedError: If a required role, or all roles of a group, have failed for good.
          RayLostError: If Ray has ended.
        """
        try:
            while not interrupted.stop and not self._job.is_finished(self.roles):
                self._check()
                time.sleep(_CHECK_PERIOD_SECONDS)
        finally:
            if interrupted.stop:
                logging.info("Stopping and saving; another Ctrl-C kills all processes")
            self._stop(interrupted)

    def _check(self) -> None:
        self._head.check()
        heartbeats = role_actor.heartbeats(self._state)
        for name, role in self.roles.items():
            was_over = role.is_over
            role.check(heartbeats.get(name))
            if role.is_over and not was_over:
                role.release()  # Its CPUs and memory are free for other roles.
        groups = self._groups()
        for group in groups.values():
            if all(role.has_failed for role in group):
                raise supervision.RoleFailedError(group[0].failure)
        if self._placement:
            self._placement.check(list(self.roles.values()), heartbeats, list(groups.values()))
        self._write_roles(heartbeats)
        self._job.update(self.roles, heartbeats)

    def _groups(self) -> dict[str, list[supervision.SupervisedRole]]:
        groups = collections.defaultdict(list)
        for name, role in self.roles.items():
            if self._specs[name].group:
                groups[self._specs[name].group].append(role)
        return groups

    def _write_roles(self, heartbeats: Mapping[str, run_state.Heartbeat]) -> None:
        rows = [_row(role, heartbeats.get(name)) for name, role in self.roles.items()]
        atomic.try_write(self._workdir / ROLES, "\n".join([_HEADER, *rows]) + "\n")

    def _stop(self, interrupted: interruption.Interruption) -> None:
        """Stops one stage after another, so that no role waits for one that has stopped."""
        specs = sorted(self._specs.values(), key=lambda spec: spec.stop_stage)
        for number, stage in itertools.groupby(specs, key=lambda spec: spec.stop_stage):
            stopping = []
            seconds = 0.0
            for spec in stage:
                role = self.roles[spec.name]
                if not spec.stop_seconds:
                    role.release()
                elif role.stop():
                    stopping.append(role)
                    seconds = max(seconds, spec.stop_seconds)
            wait_until_stopped(stopping, self._state, interrupted, seconds)
            if number is not role_spec.StopStage.ACTORS:
                self._unsaved += [role.name for role in stopping if not role.has_stopped_cleanly]

    def outcome(self, interrupted: interruption.Interruption) -> str:
        """Returns a message for the user who has stopped the fleet."""
        if not self._unsaved:
            return "Stopped and saved. The same command resumes."
        names = ", ".join(self._unsaved)
        how = "Killed" if interrupted.kill_requested else f"Stopped, but not saved: {names}"
        return f"{how}. The same command resumes from the last checkpoints."


def _thread_variables(spec: role_spec.RoleSpec) -> dict[str, str]:
    """Returns the environment variables that limit TensorFlow's threads."""
    threads = spec.num_threads
    if spec.cores_shared_by:
        threads = max(1, machines.num_cores() // spec.cores_shared_by)
    names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    return {name: str(threads) for name in names if threads}


def _row(role: supervision.SupervisedRole, heartbeat: run_state.Heartbeat | None) -> str:
    status = role.status(heartbeat).value
    if heartbeat is None:
        return f"{role.name},{status},,,,,,{role.restarts}"
    detail = heartbeat.detail.replace(",", ";") if role.has_process else ""
    memory = heartbeat.metrics.get(role_process.MEMORY, 0.0)
    return (
        f"{role.name},{status},{detail},{heartbeat.host},{heartbeat.process},{memory:.0f},"
        f"{heartbeat.age_seconds:.1f},{role.restarts}"
    )


def wait_until_stopped(
    roles: Sequence[supervision.SupervisedRole],
    state: Any,
    interrupted: interruption.Interruption,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits until roles have stopped; a role that saves replay gets as long as that takes.

    Args:
      roles: Roles that were told to stop.
      state: Handle of the `run_state.RunState`.
      interrupted: A second Ctrl-C ends the wait.
      seconds: Time limit of roles that save nothing.
      clock: Returns seconds.
      sleep: Waits for some seconds.
    """
    deadline = clock() + seconds
    next_look = clock() + _SAVING_PERIOD_SECONDS
    while working := [role.name for role in roles if role.is_working]:
        now = clock()
        if interrupted.kill_requested or now >= deadline:
            return
        if now >= next_look:
            next_look = now + _SAVING_PERIOD_SECONDS
            heartbeats = role_actor.heartbeats(state)
            if any(_is_saving(heartbeats.get(name)) for name in working):
                deadline = max(deadline, now + _SAVING_SECONDS)
        sleep(0.1)


def _is_saving(heartbeat: run_state.Heartbeat | None) -> bool:
    return bool(
        heartbeat
        and heartbeat.status is run_state.Status.SAVING
        and heartbeat.age_seconds < _SAVING_SECONDS
    )
