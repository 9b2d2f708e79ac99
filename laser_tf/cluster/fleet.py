"""The roles of one run: placed, supervised, and ended in order. Without TensorFlow or Reverb."""

import dataclasses
import logging
import pathlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ray
from ray.util import scheduling_strategies

from laser_tf import types
from laser_tf.cluster import hub, role_metrics, role_process, supervision
from laser_tf.host import folder_lock, interruption, versions, whole_files
from laser_tf.training import run_config

if TYPE_CHECKING:  # they need TensorFlow
    from laser_tf.monitoring import reporting
    from laser_tf.training import initial_weights

ROLES = "roles.csv"  # in a run's folder, written anew all the time: a line a role
_HEADER = "role,state,host,process,memory_mebibytes,silent_seconds,restarts"
_END_SECONDS = 180.0  # for roles to save themselves
_ROOM_MINUTES = 2.0  # that placing and starting a process may take
_WATCH_SECONDS = 0.5
_ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


class Fleet:
    """Learner, actors, evaluator and, where it has no servers of its own, replay of a run."""

    def __init__(
        self,
        config: run_config.RunConfig,
        workdir: pathlib.Path,
        spec: types.EnvironmentSpec,
        initial: "initial_weights.InitialWeights | None",
    ):
        """Begins the work of all roles, in a `ray_session.session`.

        Args:
          config: of the run.
          workdir: its folder, opened.
          spec: of its environment.
          initial: what a run begins from that has no checkpoint yet.

        Raises:
          InUseError: if another run of this cluster works in the folder.
          LostError: if Ray has gone.
        """
        self._config = config
        self._workdir = workdir
        self._began = time.monotonic()
        self._is_room_told = False
        self._versions = versions.of_machine()
        (workdir / role_process.LOGS).mkdir(exist_ok=True)
        self._hub = _make_hub(workdir)
        cluster = config.cluster
        shared = {"config": _of_one_actor(config), "spec": spec}
        self._replays = []
        if not config.replay.servers:
            replay = self._make(
                "replay",
                "replay_role:ReplayRole",
                shared,
                is_vital=True,
                num_cpus=cluster.replay_cpus,
            )
            self._replays.append(replay)
        self._learner = self._make(
            "learner",
            "learner_role:LearnerRole",
            {"config": config, "spec": spec, "initial": initial},
            is_vital=True,
            num_cpus=cluster.learner_cpus,
            num_gpus=cluster.learner_gpus,
        )
        self._followers = [
            self._make(
                f"learner_{index}",
                "learner_role:FollowerRole",
                {"config": config, "spec": spec, "index": index},
                is_vital=True,
                num_cpus=cluster.learner_cpus,
                num_gpus=cluster.learner_gpus,
            )
            for index in range(1, cluster.learners)
        ]
        self._actors = [
            self._make(
                f"{hub.ACTOR}{index:02d}",
                "actor_role:ActorRole",
                shared | {"index": index},
                variables=_ONE_THREAD,
                num_cpus=cluster.actor_cpus,
                scheduling_strategy="SPREAD",
            )
            for index in range(cluster.actors)
        ]

        self._evaluators = []
        if config.run.evaluate_every_env_frames:
            evaluator = self._make(
                "evaluator",
                "evaluator_role:EvaluatorRole",
                {"config": config},
                variables=_ONE_THREAD,
                num_cpus=cluster.evaluator_cpus,
            )
            self._evaluators.append(evaluator)

    def _make(
        self,
        name: str,
        place: str,
        arguments: Mapping[str, Any],
        *,
        variables: Mapping[str, str] | None = None,
        is_vital: bool = False,
        **options: Any,
    ) -> supervision.Supervised:
        process = ray.remote(
            concurrency_groups={role_process.CONTROL: 2}, max_restarts=-1, name=name, **options
        )(role_process.RoleProcess)
        actor = process.remote(
            name,
            f"laser_tf.cluster.{place}",
            arguments,
            self._workdir,
            self._hub,
            variables or {},
        )
        return supervision.Supervised(name, actor, self._versions, is_vital=is_vital)

    @property
    def _learners(self) -> list[supervision.Supervised]:
        return [self._learner, *self._followers]

    @property
    def _all(self) -> list[supervision.Supervised]:
        return [*self._replays, *self._learners, *self._actors, *self._evaluators]

    def run(self, interrupted: interruption.Interruption, display: "reporting.Display") -> bool:
        """Supervises the roles until the learner is done, or the user interrupts.

        Args:
          interrupted: what the process was asked to do.
          display: shows the learner's progress.

        Returns:
          Whether the learner has spent its budget.

        Raises:
          RoleFailedError: if replay, the learner, or all actors have failed for good.
        """
        try:
            while not interrupted.stop and not self._learner.is_done:
                healths = self._healths()
                for role in self._all:
                    role.watch(healths.get(role.name))
                if all(actor.has_failed for actor in self._actors):
                    raise supervision.RoleFailedError(self._actors[0].failure)
                self._check_room(healths)
                self._show(healths, display)
                time.sleep(_WATCH_SECONDS)
        finally:
            self._end(interrupted)
        return self._learner.is_done

    def _check_room(self, healths: Mapping[str, hub.Health]) -> None:
        """Tells, once, who waits for a machine with room; raises where that was long enough."""
        minutes = (time.monotonic() - self._began) / 60
        missing = [role.name for role in self._all if role.name not in healths]
        if not missing or minutes < _ROOM_MINUTES or not self._config.cluster.address:
            return
        names = f"{', '.join(missing[:4])}{' and others' * (len(missing) > 4)}"
        vital = {role.name for role in [*self._replays, *self._learners]}
        if minutes > max(_ROOM_MINUTES, self._config.cluster.wait_minutes) and vital & set(missing):
            raise supervision.RoleFailedError(
                f"after {minutes:.0f} minutes no machine of the cluster has room for {names}: add "
                "machines, lower cluster.learner_gpus or cluster.learner_cpus, or raise "
                "cluster.wait_minutes"
            )
        if not self._is_room_told:
            logging.info("%s wait for a machine with room", names)
            self._is_room_told = True

    def _healths(self) -> dict[str, hub.Health]:
        try:
            return ray.get(self._hub.healths.remote(), timeout=10.0)
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            return {}  # it is being restarted

    def _show(self, healths: Mapping[str, hub.Health], display: "reporting.Display") -> None:
        if "learner" in healths:
            start = "progress/"
            numbers: dict[str, Any] = {
                name.removeprefix(start): value
                for name, value in healths["learner"].metrics.items()
                if name.startswith(start)
            }
            if numbers:
                display.update(**numbers | {"env_frames": int(numbers["env_frames"])})
        lines = [_HEADER, *(_health_line(role, healths.get(role.name)) for role in self._all)]
        whole_files.try_write(self._workdir / ROLES, "\n".join(lines) + "\n")

    def _end(self, interrupted: interruption.Interruption) -> None:
        """Actors first, replay last: nobody is left waiting for another."""
        for roles in (self._actors + self._evaluators, self._learners, self._replays):
            for role in roles:
                role.stop()
            deadline = time.monotonic() + _END_SECONDS
            while any(role.is_working for role in roles) and time.monotonic() < deadline:
                if interrupted.hurry:
                    return
                time.sleep(0.1)


def _health_line(role: supervision.Supervised, said: hub.Health | None) -> str:
    state = "failed" if role.has_failed else "done" if role.is_done else "starts"
    if said is None:
        return f"{role.name},{state},,,,,{role.restarts}"
    if state == "starts":
        state = said.state.replace(",", ";")
    memory = said.metrics.get(role_metrics.MEMORY, 0.0)
    place = f"{said.host},{said.process},{memory:.0f},{said.seconds:.1f}"
    return f"{role.name},{state},{place},{role.restarts}"


def _of_one_actor(config: run_config.RunConfig) -> run_config.RunConfig:
    num_envs = config.cluster.envs_per_actor or config.environment.num_envs
    environment = dataclasses.replace(config.environment, num_envs=num_envs)
    return dataclasses.replace(config, environment=environment)


def _make_hub(workdir: pathlib.Path) -> Any:
    """The run's hub, on this machine; its name is what tells a second run on the same folder."""
    here = scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=True
    )
    name = f"laser_tf:{workdir}"
    make = ray.remote(
        num_cpus=0, max_restarts=-1, max_task_retries=0, name=name, scheduling_strategy=here
    )(hub.Hub)
    deadline = time.monotonic() + folder_lock.LEAVING_SECONDS
    while True:
        try:
            return make.remote()
        except ValueError:  # the name is taken
            if time.monotonic() >= deadline:
                raise folder_lock.InUseError(
                    f"another run of this cluster works in {workdir}: wait for its end or end it, "
                    "or use another --workdir"
                ) from None
            time.sleep(1.0)


def asked_cpus(config: run_config.RunConfig) -> float:
    """CPUs that a run's roles ask Ray for together."""
    cluster = config.cluster
    evaluator = cluster.evaluator_cpus if config.run.evaluate_every_env_frames else 0.0
    actors = cluster.actors * cluster.actor_cpus
    replay = 0.0 if config.replay.servers else cluster.replay_cpus
    return replay + cluster.learners * cluster.learner_cpus + actors + evaluator
