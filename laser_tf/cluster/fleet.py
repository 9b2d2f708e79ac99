"""Starts, supervises and stops the processes of a run or sweep."""

import abc
import collections
import contextlib
import logging
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray

from laser_tf.cluster import machines, role, role_process, run_state, supervision
from laser_tf.host import interruption
from laser_tf.training import cluster_config
from laser_tf.workdir import atomic, versions

ROLES = "roles.csv"  # In the directory of a run or a sweep; one row for each role.
_HEADER = "role,status,detail,host,pid,memory_mebibytes,silent_seconds,restarts"
_CHECK_PERIOD_SECONDS = 0.5
_SAVING_SECONDS = 120.0  # Extension of the stop deadline after each SAVING heartbeat.
_REPORT_WAITING_MINUTES = 2.0  # Ray may need this long to place and start a process.
_MIN_WAIT_MINUTES = 5.0

SupervisedRoles = Mapping[str, supervision.SupervisedRole]
Heartbeats = Mapping[str, run_state.Heartbeat]


class Work(abc.ABC):
    """Roles of a fleet and the display of their progress, for a run or a sweep."""

    def __init__(
        self, role_specs: Sequence[role.RoleSpec], display: contextlib.AbstractContextManager[Any]
    ):
        self.role_specs = role_specs
        self.display = display

    @property
    def requested_resources(self) -> tuple[float, float]:
        """The CPUs and GPUs that all roles request together."""
        specs = self.role_specs
        return sum(spec.num_cpus for spec in specs), sum(spec.num_gpus for spec in specs)

    def start(self) -> None:  # noqa: B027 (optional)
        """Starts services that the roles use, in addition to `RunState`."""

    @abc.abstractmethod
    def is_finished(self, roles: SupervisedRoles) -> bool:
        """Returns whether the fleet's work is complete."""

    @abc.abstractmethod
    def update(self, roles: SupervisedRoles, heartbeats: Heartbeats) -> None:
        """Processes the newest state of the roles, e.g. shows it."""

    def finish(self) -> None:  # noqa: B027 (a run has nothing to complete)
        """Completes the work after `is_finished`; raises UserError if a part of it has failed."""


class Fleet:
    """Roles in processes of Ray, on one machine or on several."""

    def __init__(self, work: Work, workdir: pathlib.Path, cluster: cluster_config.ClusterConfig):
        """Starts all roles; call in a `ray_session.session`, with the directory locked."""
        self._work = work
        self._workdir = workdir
        self._cluster = cluster
        (workdir / role_process.LOGS).mkdir(exist_ok=True)
        work.start()
        self._shared_state = machines.start_service(run_state.RunState)
        self._ray_monitor = machines.RayMonitor()
        self._versions = versions.of_machine()
        self._is_waiting_logged = False
        self._unsaved: list[str] = []
        self.roles = {spec.name: self._start(spec) for spec in work.role_specs}

    def _start(self, spec: role.RoleSpec) -> supervision.SupervisedRole:
        process = ray.remote(
            concurrency_groups={role_process.CONTROL: 2},
            max_restarts=0,
            enable_task_events=False,
            num_cpus=spec.num_cpus,
            num_gpus=spec.num_gpus,
            scheduling_strategy=machines.on_this_machine(soft=True) if spec.is_local else "SPREAD",
        )(role_process.RoleProcess)
        num_threads = spec.num_threads
        if spec.cores_shared_by:
            num_threads = max(1, machines.total_cores() // spec.cores_shared_by)
        arguments = spec, self._workdir, self._shared_state, self._versions, num_threads
        return supervision.SupervisedRole(spec, lambda: process.remote(*arguments))

    def _heartbeats(self) -> Heartbeats:
        """Returns the heartbeats of all roles; {} while the shared state is restarted."""
        return role.call(self._shared_state, "heartbeats") or {}

    def run(self, signals: interruption.Interruption) -> None:
        """Supervises the roles until the work is complete or a signal arrives, then stops them.

        Raises:
          RoleFailedError: If a required role, or all roles of a group, have failed for good.
          RayLostError: If Ray has ended.
        """
        try:
            while not signals.stop_requested and not self._work.is_finished(self.roles):
                self._check()
                time.sleep(_CHECK_PERIOD_SECONDS)
        finally:
            if signals.stop_requested:
                logging.info("Stopping and saving; another Ctrl-C kills all processes")
            self._stop(signals)

    def _check(self) -> None:
        self._ray_monitor.check()
        heartbeats = self._heartbeats()
        for name, supervised in self.roles.items():
            supervised.check(heartbeats.get(name))
        groups = self._groups()
        for group in groups:
            if all(supervised.final_failure for supervised in group):
                raise supervision.RoleFailedError(group[0].final_failure)
        if self._cluster.address:  # Otherwise Ray was started with room for all roles.
            self._check_placement(groups)
        rows = [_row(supervised, heartbeats.get(n)) for n, supervised in self.roles.items()]
        with contextlib.suppress(OSError):
            atomic.write(self._workdir / ROLES, "\n".join([_HEADER, *rows]) + "\n")
        self._work.update(self.roles, heartbeats)

    def _groups(self) -> list[list[supervision.SupervisedRole]]:
        """Returns groups of roles; the fleet needs one working role of each."""
        groups = collections.defaultdict(list)
        for supervised in self.roles.values():
            if supervised.spec.is_required or supervised.spec.group:
                groups[supervised.spec.group or supervised.name].append(supervised)
        return list(groups.values())

    def _check_placement(self, groups: Sequence[Sequence[supervision.SupervisedRole]]) -> None:
        """Logs which roles wait for a machine with room; raises if they wait too long."""
        minutes = {name: supervised.waiting_seconds / 60 for name, supervised in self.roles.items()}
        waiting = [name for name in self.roles if minutes[name] >= _REPORT_WAITING_MINUTES]
        names = ", ".join(waiting[:4]) + " and others" * (len(waiting) > 4)
        blocked = max(min(minutes[supervised.name] for supervised in group) for group in groups)
        if blocked > max(_MIN_WAIT_MINUTES, self._cluster.wait_minutes):
            raise supervision.RoleFailedError(
                f"After {blocked:.0f} minutes no machine of the cluster has room for {names}. Add "
                "machines, lower cluster.learner_gpus, cluster.learner_cpus or cluster.actor_cpus, "
                "or raise cluster.wait_minutes."
            )
        if waiting and not self._is_waiting_logged:
            logging.info("Waiting for a machine with room for %s", names)
        self._is_waiting_logged = bool(waiting)

    def _stop(self, signals: interruption.Interruption) -> None:
        """Stops one stage after another, so that a role stops after the roles that need it."""
        for stage in role.StopStage:
            stopping = []
            roles = [r for r in self.roles.values() if r.spec.stop_stage is stage]
            for supervised in roles:
                if not supervised.spec.stop_seconds:
                    supervised.kill()
                elif supervised.request_stop():
                    stopping.append(supervised)
            self._wait_until_stopped(stopping, signals)
            if stage is not role.StopStage.ACTING:
                self._unsaved += [r.name for r in roles if r.has_unsaved_work]

    def _wait_until_stopped(
        self, roles: Sequence[supervision.SupervisedRole], signals: interruption.Interruption
    ) -> None:
        """Waits for roles up to a deadline, which is extended while a role saves replay."""
        limit_seconds = max((supervised.spec.stop_seconds for supervised in roles), default=0.0)
        deadline = time.monotonic() + limit_seconds
        while working := [supervised.name for supervised in roles if supervised.is_running]:
            heartbeats = self._heartbeats()
            if any(_is_saving(heartbeats.get(name)) for name in working):
                deadline = max(deadline, time.monotonic() + _SAVING_SECONDS)
            if signals.kill_requested or time.monotonic() >= deadline:
                return
            time.sleep(_CHECK_PERIOD_SECONDS)

    def outcome(self, signals: interruption.Interruption) -> str:
        """Returns a message for the user who has stopped the fleet."""
        if not self._unsaved:
            return "Stopped and saved. The same command resumes."
        names = ", ".join(self._unsaved)
        how = "Killed" if signals.kill_requested else f"Stopped, but not saved: {names}"
        return f"{how}. The same command resumes from the last checkpoints."


def _row(supervised: supervision.SupervisedRole, heartbeat: run_state.Heartbeat | None) -> str:
    status = supervised.status(heartbeat).value
    if heartbeat is None:
        return f"{supervised.name},{status},,,,,,{supervised.restarts}"
    detail = heartbeat.detail.replace(",", ";") if supervised.has_reported else ""
    memory = heartbeat.metrics.get(role_process.MEMORY, 0.0)
    return (
        f"{supervised.name},{status},{detail},{heartbeat.host},{heartbeat.pid},{memory:.0f},"
        f"{heartbeat.age_seconds:.1f},{supervised.restarts}"
    )


def _is_saving(heartbeat: run_state.Heartbeat | None) -> bool:
    return bool(
        heartbeat
        and heartbeat.status is run_state.Status.SAVING
        and heartbeat.age_seconds < _SAVING_SECONDS
    )
