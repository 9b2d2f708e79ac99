"""A sweep as the work of a fleet: replay, the members, and their coordinator."""

import dataclasses
import logging
import os
import pathlib
from typing import Any

import ray

from laser_tf import errors, types
from laser_tf.cluster import fleet, machines, role, role_process, run_state, run_work, supervision
from laser_tf.sweeps import coordinator, lineage, sweep_config, sweep_display
from laser_tf.workdir import lock, run_directory

_LOCK = "coordinator_lock"  # In the sweep's directory, whose own lock the driver holds.
_LOG = pathlib.PurePath(role_process.LOGS, "coordinator.log")


class CoordinatorProcess(coordinator.Coordinator):
    """A coordinator in a separate process."""

    def __init__(self, config: sweep_config.SweepConfig, workdir: pathlib.Path):
        role_process.log_to(workdir / _LOG)
        # The coordinator of a driver that was killed may still write.
        lock.acquire(workdir / _LOCK, lock.EXIT_TIMEOUT_SECONDS)
        super().__init__(config, workdir)
        logging.info("Started process %d for %d members", os.getpid(), len(config.members))


class SweepWork(fleet.Work):
    """Ends when all members have ended, and shows their progress; see `fleet.Work`."""

    display: sweep_display.SweepDisplay

    def __init__(
        self,
        config: sweep_config.SweepConfig,
        spec: types.EnvironmentSpec,
        workdir: pathlib.Path,
        display: sweep_display.SweepDisplay,
    ):
        """Lists the roles of the sweep; `spec` describes the first member's environment."""
        role_specs = []
        if config.sweep.shared_replay:
            replay = run_work.replay_spec(
                config.first, spec, checkpoint_directory="replay", queues=config.queues
            )
            cpus = config.cluster.replay_cpus
            role_specs.append(dataclasses.replace(replay, num_cpus=cpus, is_local=True))
        role_specs += [
            _member_spec(config, name, index) for index, name in enumerate(config.members)
        ]
        super().__init__(role_specs, display)
        self._config = config
        self._workdir = workdir
        self._coordinator: Any = None
        self._reports: dict[str, dict[str, Any]] = {}
        self._failed: list[str] = []

    def start(self) -> None:
        """Starts the coordinator; ConfigError if the population's lineage is damaged."""
        # A damaged file raises here instead of in the process of the coordinator.
        lineage.read(self._workdir / lineage.FILE)
        self._coordinator = machines.start_service(
            CoordinatorProcess, self._config, self._workdir, name=coordinator.NAME
        )

    def is_finished(self, roles: fleet.SupervisedRoles) -> bool:
        """Returns whether all members have finished or failed."""
        return all(roles[name].is_terminal for name in self._config.members)

    def update(self, roles: fleet.SupervisedRoles, heartbeats: fleet.Heartbeats) -> None:
        """Shows the members' progress."""
        members = {name: roles[name] for name in self._config.members}
        self._failed = [name for name, member in members.items() if member.final_failure]
        self._reports = self._read_reports() or self._reports
        states = {name: _describe(m, heartbeats.get(name)) for name, m in members.items()}
        self.display.update(self._reports, states)

    def _read_reports(self) -> dict[str, dict[str, Any]]:
        """Returns the members' last reports; {} while the coordinator is restarted."""
        try:
            return ray.get(self._coordinator.status.remote(), timeout=10.0)
        except ray.exceptions.ActorDiedError as error:  # Its constructor has failed.
            raise errors.UserError(
                f"The sweep's coordinator cannot start; see {self._workdir / _LOG}. The same "
                "command resumes."
            ) from error
        except ray.exceptions.GetTimeoutError:
            return {}

    def finish(self) -> None:
        """Marks the sweep as finished; UserError if members have failed."""
        if self._failed:
            raise errors.UserError(
                f"Failed: {', '.join(self._failed)}. See their logs in "
                f"{self._workdir / role_process.LOGS}. The same command tries them again."
            )
        (self._workdir / run_directory.FINISHED).touch()


def _describe(member: supervision.SupervisedRole, heartbeat: run_state.Heartbeat | None) -> str:
    state = member.activity(heartbeat)
    is_restarted = member.restarts and not member.is_terminal
    return f"{state}, {member.restarts} restarts" if is_restarted else state


def _member_spec(config: sweep_config.SweepConfig, name: str, index: int) -> role.RoleSpec:
    return role.RoleSpec(
        name,
        "laser_tf.cluster.member_role:MemberRole",
        {
            "config": config.members[name],
            "index": index,
            "shares_replay": config.sweep.shared_replay,
            # One member writes them; the driver would have to import TensorFlow.
            "members_hyperparameters": {} if index else config.hyperparameters,
        },
        role.StopStage.LEARNERS,
        group="members",
        num_cpus=config.cluster.learner_cpus,
        num_gpus=config.cluster.learner_gpus,
        cores_shared_by=len(config.members),
    )
