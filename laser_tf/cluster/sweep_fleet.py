"""The roles of a sweep: placed, supervised, and ended in order. Without TensorFlow or Reverb."""

import logging
import os
import pathlib
import time
from typing import Any

import ray

from laser_tf import errors, types
from laser_tf.cluster import placement, role_process, roles, supervision
from laser_tf.host import interruption, kept_command
from laser_tf.sweeps import coordinator, lineage, sweep_config, sweep_display
from laser_tf.workdir import lock, run_directory, versions

_LOCK = "coordinator_lock"  # in a sweep's folder; its own is held by the driver
_WATCH_SECONDS = 0.5


class _Meeting(coordinator.Coordinator):
    """A coordinator in a process of its own."""

    def __init__(self, config: sweep_config.SweepConfig, folder: pathlib.Path):
        role_process.log_to(folder / role_process.LOGS / "coordinator.log")
        # One whose driver was killed may write still.
        lock.acquire(folder / _LOCK, lock.EXIT_TIMEOUT_SECONDS)
        super().__init__(config, folder)
        logging.info("process %d expects %d agents", os.getpid(), len(config.agents))


class SweepFleet:
    """Replay, coordinator and agents of a sweep."""

    def __init__(
        self, config: sweep_config.SweepConfig, workdir: pathlib.Path, spec: types.EnvironmentSpec
    ):
        """Begins the work of all roles, in a `ray_session.session`.

        Args:
          config: of the sweep.
          workdir: its folder, opened.
          spec: of its first agent's environment.

        Raises:
          InUseError: if another sweep of this cluster works in the folder.
          ValueError: if the population's lineage is damaged.
        """
        self.unsaved: list[str] = []  # roles, see `roles.end`
        self._config = config
        self._workdir = workdir
        lineage.read(workdir / lineage.FILE)  # a damaged one is refused here, in one line
        (workdir / role_process.LOGS).mkdir(exist_ok=True)
        self._hub = roles.make_hub(workdir)
        self._meeting = roles.restarted(
            _Meeting, num_cpus=0, max_task_retries=0, scheduling_strategy=roles.here()
        ).remote(config, workdir)
        self._reports: dict[str, dict[str, Any]] = {}
        self._versions = versions.of_machine()
        self._replay = [self._make_replay(spec)] if config.sweep.shared_replay else []
        self._agents = {
            name: self._make_agent(name, index) for index, name in enumerate(config.agents)
        }
        self._working = set(self._agents)  # whose processes are not known to have died
        self._placement = placement.Placement(config.cluster.wait_minutes)

    def _make_replay(self, spec: types.EnvironmentSpec) -> supervision.Supervised:
        return roles.make_role(
            "replay",
            "replay_role:ReplayRole",
            {
                "config": self._config.first,
                "spec": spec,
                "checkpoint": "replay",
                "queues": sweep_config.queues(self._config),
            },
            self._workdir,
            self._hub,
            self._versions,
            is_vital=True,
            num_cpus=self._config.cluster.replay_cpus,
            scheduling_strategy=roles.here(soft=True),
        )

    def _make_agent(self, name: str, index: int) -> supervision.Supervised:
        # Each process would take all cores for itself.
        threads = str(max(1, _cores() // len(self._config.agents)))
        return roles.make_role(
            name,
            "member_role:MemberRole",
            {
                "config": self._config.agents[name],
                "index": index,
                "meeting": self._meeting,
                "shares_replay": self._config.sweep.shared_replay,
                # One does it for all; this process would have to load TensorFlow for it.
                "columns": {} if index else self._config.hyperparameters,
            },
            self._workdir,
            self._hub,
            self._versions,
            variables={"TF_NUM_INTRAOP_THREADS": threads, "TF_NUM_INTEROP_THREADS": threads},
            num_cpus=self._config.cluster.learner_cpus,
            num_gpus=self._config.cluster.learner_gpus,
            scheduling_strategy="SPREAD",
        )

    def run(
        self, interrupted: interruption.Interruption, display: sweep_display.SweepDisplay
    ) -> None:
        """Supervises the roles until all agents are done, or the user interrupts.

        Args:
          interrupted: what the process was asked to do.
          display: shows the agents' progress.

        Raises:
          RoleFailedError: if replay or an agent has failed for good.
          LostError: if Ray has gone.
        """
        try:
            while not interrupted.stop and not all(map(_is_over, self._agents.values())):
                self._watch()
                self._reports = self._ask_status() or self._reports
                display.update(self._reports, self._states())
                time.sleep(_WATCH_SECONDS)
        finally:
            if interrupted.stop:
                logging.info("agents and replay save themselves; another Ctrl-C kills them")
            # Replay last: nobody is left waiting for another.
            groups = list(self._agents.values()), self._replay
            self.unsaved = roles.end(groups, interrupted, self._hub)

    def _watch(self) -> None:
        healths = roles.healths(self._hub)
        everybody = (*self._replay, *self._agents.values())
        roles.write_states(self._workdir, everybody, healths)
        if self._config.cluster.address:
            self._placement.check(everybody, healths, list(self._agents.values()))
        for role in everybody:
            was_over = _is_over(role)
            role.watch(healths.get(role.name))
            if _is_over(role) and not was_over:
                role.release()  # its memory, and its CPUs for others
        for name, agent in self._agents.items():
            if agent.is_working:
                self._working.add(name)
            elif name in self._working:
                self._working.remove(name)
                self._meeting.lose.remote(name)  # nobody has to wait for it

    def _ask_status(self) -> dict[str, dict[str, Any]]:
        try:
            return ray.get(self._meeting.status.remote(), timeout=10.0)
        except ray.exceptions.ActorDiedError as error:
            # It is started again without end, unless it cannot begin or Ray has gone.
            log = self._workdir / role_process.LOGS / "coordinator.log"
            raise kept_command.LostError(f"the sweep's coordinator is lost, see {log}") from error
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            return {}  # it is being restarted

    def _states(self) -> dict[str, str]:
        return {name: self._state(name, agent) for name, agent in self._agents.items()}

    def _state(self, name: str, agent: supervision.Supervised) -> str:
        if agent.has_failed:
            return "failed"
        if agent.is_done:
            return "finished"
        if self._reports.get(name, {}).get("finished"):
            evaluates = self._config.agents[name].run.evaluation_episodes
            return "finished, evaluating" if evaluates else "finished"
        # Ray starts the process of one that is not there, or waits for a machine with room.
        state = "running" if agent.is_there else "starts"
        return state + (f", restarted {agent.restarts} times" if agent.restarts else "")

    def check_outcome(self) -> None:
        """Notes that the sweep is finished, once all agents are over.

        Raises:
          UserError: if some have failed.
        """
        failed = [name for name, agent in self._agents.items() if agent.has_failed]
        if failed:
            raise errors.UserError(
                f"failed: {', '.join(failed)}; see their logs in "
                f"{self._workdir / role_process.LOGS}. The same command tries them again"
            )
        (self._workdir / run_directory.FINISHED).touch()


def _is_over(role: supervision.Supervised) -> bool:
    return role.is_done or role.has_failed


def _cores() -> int:
    """Of all machines; of this one those that the process may use."""
    here = len(os.sched_getaffinity(0))
    nodes = [node for node in ray.nodes() if node["Alive"]]
    if len(nodes) == 1:
        return here
    return int(sum(node["Resources"].get("CPU", 0) for node in nodes))


def asked(config: sweep_config.SweepConfig) -> tuple[float, float]:
    """CPUs and GPUs that a sweep's roles ask Ray for together."""
    cluster, agents = config.cluster, len(config.agents)
    replay = cluster.replay_cpus if config.sweep.shared_replay else 0.0
    return replay + agents * cluster.learner_cpus, agents * cluster.learner_gpus
