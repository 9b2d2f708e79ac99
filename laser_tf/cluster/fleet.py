"""The roles of one run: placed, supervised, and ended in order. Without TensorFlow or Reverb."""

import dataclasses
import pathlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from laser_tf import types
from laser_tf.cluster import hub, placement, role_process, roles, supervision
from laser_tf.host import interruption
from laser_tf.training import run_config
from laser_tf.workdir import versions

if TYPE_CHECKING:  # they need TensorFlow
    from laser_tf.monitoring import reporting
    from laser_tf.training import initial_weights

_WATCH_SECONDS = 0.5
_ACTOR_END_SECONDS = 20.0  # for actors to end
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
        self.unsaved: list[str] = []  # roles, see `roles.end`
        self._config = config
        self._workdir = workdir
        self._placement = placement.Placement(config.cluster.wait_minutes)
        self._versions = versions.of_machine()
        (workdir / role_process.LOGS).mkdir(exist_ok=True)
        self._hub = roles.make_hub(workdir)
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
                reply_seconds=config.environment.max_step_seconds,
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
        self, name: str, place: str, arguments: Mapping[str, Any], **options: Any
    ) -> supervision.Supervised:
        return roles.make_role(
            name, place, arguments, self._workdir, self._hub, self._versions, **options
        )

    @property
    def _learners(self) -> list[supervision.Supervised]:
        return [self._learner, *self._followers]

    @property
    def _all(self) -> list[supervision.Supervised]:
        return [*self._replays, *self._learners, *self._actors, *self._evaluators]

    def run(self, interrupted: interruption.Interruption, display: "reporting.Display") -> None:
        """Supervises the roles until the learner is done, or the user interrupts.

        Args:
          interrupted: what the process was asked to do.
          display: shows the learner's progress.

        Raises:
          RoleFailedError: if replay, the learner, or all actors have failed for good.
        """
        try:
            while not interrupted.stop and not self._learner.is_done:
                healths = roles.healths(self._hub)
                for role in self._all:
                    role.watch(healths.get(role.name))
                if all(actor.has_failed for actor in self._actors):
                    raise supervision.RoleFailedError(self._actors[0].failure)
                if self._config.cluster.address:
                    self._placement.check(self._all, healths, self._actors)
                self._show(healths, display)
                time.sleep(_WATCH_SECONDS)
        finally:
            for evaluator in self._evaluators:
                evaluator.release()  # it has nothing to save, and may be at a long game
            # Replay last: nobody is left waiting for another. Actors have nothing to save, and one
            # that hangs in its environments is not waited for: the learner's weights are not saved.
            roles.end([self._actors], interrupted, self._hub, _ACTOR_END_SECONDS)
            self.unsaved = roles.end([self._learners, self._replays], interrupted, self._hub)

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
        roles.write_states(self._workdir, self._all, healths)


def _of_one_actor(config: run_config.RunConfig) -> run_config.RunConfig:
    num_envs = config.cluster.envs_per_actor or config.environment.num_envs
    environment = dataclasses.replace(config.environment, num_envs=num_envs)
    return dataclasses.replace(config, environment=environment)


def asked_cpus(config: run_config.RunConfig) -> float:
    """CPUs that a run's roles ask Ray for together."""
    cluster = config.cluster
    evaluator = cluster.evaluator_cpus if config.run.evaluate_every_env_frames else 0.0
    actors = cluster.actors * cluster.actor_cpus
    replay = 0.0 if config.replay.servers else cluster.replay_cpus
    return replay + cluster.learners * cluster.learner_cpus + actors + evaluator
