"""A sweep as the work of a fleet: replay, the members, and their coordinator."""

import logging
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import ray

from laser_tf import errors, types
from laser_tf.cluster import role_actor, role_process, role_spec, run_state, supervision
from laser_tf.sweeps import coordinator, lineage, sweep_config, sweep_display
from laser_tf.workdir import lock, run_directory

_LOCK = "coordinator_lock"  # In the sweep's directory, whose own lock the driver holds.
_LOG = pathlib.PurePath(role_process.LOGS, "coordinator.log")


class CoordinatorActor(coordinator.Coordinator):
    """A coordinator in a separate process."""

    def __init__(self, config: sweep_config.SweepConfig, workdir: pathlib.Path):
        role_process.log_to(workdir / _LOG)
        # The coordinator of a driver that was killed may still write.
        lock.acquire(workdir / _LOCK, lock.EXIT_TIMEOUT_SECONDS)
        super().__init__(config, workdir)
        logging.info("Started process %d for %d members", os.getpid(), len(config.members))


def find_coordinator(workdir: pathlib.Path) -> Any:
    """Returns Ray's handle of a sweep's coordinator."""
    return ray.get_actor(_coordinator_name(workdir), namespace=role_actor.NAMESPACE)


def _coordinator_name(workdir: pathlib.Path) -> str:
    return f"coordinator of {workdir}"


def role_specs(
    config: sweep_config.SweepConfig, spec: types.EnvironmentSpec
) -> list[role_spec.RoleSpec]:
    """Returns the roles of a sweep.

    Args:
      config: Configuration of the sweep.
      spec: Specs of the first member's environment.
    """
    roles = [_replay(config, spec)] if config.sweep.shared_replay else []
    return roles + [_member(config, name, index) for index, name in enumerate(config.members)]


def _replay(config: sweep_config.SweepConfig, spec: types.EnvironmentSpec) -> role_spec.RoleSpec:
    return role_spec.RoleSpec(
        "replay",
        "replay_role:ReplayRole",
        {
            "config": config.first,
            "spec": spec,
            "directory": "replay",
            "queues": sweep_config.queues(config),
        },
        role_spec.StopStage.REPLAY,
        required=True,
        num_cpus=config.cluster.replay_cpus,
        is_local=True,
    )


def _member(config: sweep_config.SweepConfig, name: str, index: int) -> role_spec.RoleSpec:
    return role_spec.RoleSpec(
        name,
        "member_role:MemberRole",
        {
            "config": config.members[name],
            "index": index,
            "shares_replay": config.sweep.shared_replay,
            # One member writes them; the driver would have to import TensorFlow.
            "columns": {} if index else config.hyperparameters,
        },
        role_spec.StopStage.LEARNERS,
        group="members",
        num_cpus=config.cluster.learner_cpus,
        num_gpus=config.cluster.learner_gpus,
        cores_shared_by=len(config.members),
    )


class SweepJob:
    """Ends when all members have ended, and shows their progress; see `fleet.Job`."""

    def __init__(
        self,
        config: sweep_config.SweepConfig,
        workdir: pathlib.Path,
        display: sweep_display.SweepDisplay,
    ):
        """Creates the job.

        Args:
          config: Configuration of the sweep.
          workdir: Directory of the sweep.
          display: Shows the members' progress.
        """
        self._config = config
        self._workdir = workdir
        self._coordinator: Any = None
        self._display = display
        self._reports: dict[str, dict[str, Any]] = {}
        self._working = set(config.members)  # Members whose processes are not known to have died.
        self._failed: list[str] = []

    def start(self) -> None:
        """Starts the coordinator on this machine.

        Raises:
          ValueError: If the population's lineage is damaged.
        """
        lineage.read(self._workdir / lineage.FILE)  # Rejects damage here, in one line.
        make = role_actor.restarted(
            CoordinatorActor,
            num_cpus=0,
            name=_coordinator_name(self._workdir),
            namespace=role_actor.NAMESPACE,
            scheduling_strategy=role_actor.on_this_node(),
        )
        self._coordinator = make.remote(self._config, self._workdir)

    def is_finished(self, roles: Mapping[str, supervision.SupervisedRole]) -> bool:
        """Returns whether all members have finished or failed."""
        return all(roles[name].is_over for name in self._config.members)

    def update(
        self,
        roles: Mapping[str, supervision.SupervisedRole],
        heartbeats: Mapping[str, run_state.Heartbeat],
    ) -> None:
        """Reports dead members to the coordinator and shows the members' progress."""
        members = {name: roles[name] for name in self._config.members}
        for name, member in members.items():
            if member.is_working:
                self._working.add(name)
            elif name in self._working:
                self._working.remove(name)
                self._coordinator.mark_dead.remote(name)
        self._failed = [name for name, member in members.items() if member.has_failed]
        self._reports = self._read_reports() or self._reports
        states = {
            name: self._describe(member, heartbeats.get(name)) for name, member in members.items()
        }
        self._display.update(self._reports, states)

    def _read_reports(self) -> dict[str, dict[str, Any]]:
        """Returns the members' last reports; {} while the coordinator is restarted."""
        try:
            return ray.get(self._coordinator.status.remote(), timeout=10.0)
        except ray.exceptions.ActorDiedError as error:
            # Ray restarts it without limit, unless its constructor fails or Ray has ended.
            raise supervision.RayLostError(
                f"The sweep's coordinator cannot start; see {self._workdir / _LOG}. The same "
                "command resumes."
            ) from error
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            return {}

    def _describe(
        self, member: supervision.SupervisedRole, heartbeat: run_state.Heartbeat | None
    ) -> str:
        state = member.status(heartbeat).value
        has_spent_budget = self._reports.get(member.name, {}).get("finished")
        if not member.is_over and has_spent_budget:
            state = f"finished, {run_state.Status.EVALUATING.value}"
        if member.restarts and not member.is_over and not has_spent_budget:
            state += f", {member.restarts} restarts"
        return state

    def finish(self) -> None:
        """Marks the sweep as finished; call it once all members have ended.

        Raises:
          UserError: If members have failed.
        """
        if self._failed:
            raise errors.UserError(
                f"Failed: {', '.join(self._failed)}. See their logs in "
                f"{self._workdir / role_process.LOGS}. The same command tries them again."
            )
        (self._workdir / run_directory.FINISHED).touch()
