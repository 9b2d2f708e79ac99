"""A run as the work of a fleet: replay, learners, actors and an evaluator."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from laser_tf import types
from laser_tf.cluster import role_spec, run_state, supervision
from laser_tf.training import run_config

if TYPE_CHECKING:  # These modules import TensorFlow.
    from laser_tf.monitoring import reporting
    from laser_tf.training import initial_weights

PROGRESS = "progress/"  # Prefix of the learner's metrics for the progress display.
_LEARNER = "learner"
_ACTORS_STOP_SECONDS = 20.0  # Without waiting for an environment that hangs.


def role_specs(
    config: run_config.RunConfig,
    spec: types.EnvironmentSpec,
    initial: "initial_weights.InitialWeights | None",
) -> list[role_spec.RoleSpec]:
    """Returns the roles of a run.

    Args:
      config: Configuration of the run.
      spec: Specs of its environment.
      initial: Weights for a run without a checkpoint; None for random weights.
    """
    roles = []
    if not config.replay.address:
        roles.append(_replay(config, spec))
    roles.append(_learner(config, _LEARNER, "LearnerRole", {"spec": spec, "initial": initial}))
    for index in range(1, config.cluster.learners):
        name = f"{_LEARNER}_{index}"
        roles.append(_learner(config, name, "FollowerRole", {"spec": spec, "index": index}))
    roles += [_actor(config, spec, index) for index in range(config.cluster.actors)]
    if config.run.evaluate_every_env_frames:
        roles.append(_evaluator(config))
    return roles


def _replay(config: run_config.RunConfig, spec: types.EnvironmentSpec) -> role_spec.RoleSpec:
    return role_spec.RoleSpec(
        "replay",
        "replay_role:ReplayRole",
        {"config": config, "spec": spec},
        role_spec.StopStage.REPLAY,
        required=True,
        num_cpus=config.cluster.replay_cpus,
    )


def _learner(
    config: run_config.RunConfig, name: str, role_class: str, arguments: Mapping[str, Any]
) -> role_spec.RoleSpec:
    return role_spec.RoleSpec(
        name,
        f"learner_role:{role_class}",
        {"config": config, **arguments},
        role_spec.StopStage.LEARNERS,
        required=True,
        num_cpus=config.cluster.learner_cpus,
        num_gpus=config.cluster.learner_gpus,
    )


def _actor(
    config: run_config.RunConfig, spec: types.EnvironmentSpec, index: int
) -> role_spec.RoleSpec:
    num_envs = config.cluster.envs_per_actor or config.environment.num_envs
    environment = dataclasses.replace(config.environment, num_envs=num_envs)
    return role_spec.RoleSpec(
        f"{run_state.ACTOR}{index:02d}",
        "actor_role:ActorRole",
        {
            "config": dataclasses.replace(config, environment=environment),
            "spec": spec,
            "index": index,
        },
        role_spec.StopStage.ACTORS,
        stop_seconds=_ACTORS_STOP_SECONDS,
        group="actors",
        num_cpus=config.cluster.actor_cpus,
        max_step_seconds=config.environment.max_step_seconds,
        num_threads=1,
    )


def _evaluator(config: run_config.RunConfig) -> role_spec.RoleSpec:
    return role_spec.RoleSpec(
        "evaluator",
        "evaluator_role:EvaluatorRole",
        {"config": config},
        role_spec.StopStage.ACTORS,
        stop_seconds=0.0,
        num_cpus=config.cluster.evaluator_cpus,
        num_threads=1,
    )


class RunJob:
    """Ends with the learner and shows its progress; see `fleet.Job`."""

    def __init__(self, display: "reporting.Display"):
        """Creates the job.

        Args:
          display: Shows the learner's progress.
        """
        self._display = display

    def start(self) -> None:
        """Does nothing: a run has no processes but its roles."""

    def is_finished(self, roles: Mapping[str, supervision.SupervisedRole]) -> bool:
        """Returns whether the learner has spent its budget."""
        return roles[_LEARNER].is_done

    def update(
        self,
        roles: Mapping[str, supervision.SupervisedRole],
        heartbeats: Mapping[str, run_state.Heartbeat],
    ) -> None:
        """Shows the learner's progress."""
        if _LEARNER not in heartbeats:
            return
        numbers: dict[str, Any] = {
            name.removeprefix(PROGRESS): value
            for name, value in heartbeats[_LEARNER].metrics.items()
            if name.startswith(PROGRESS)
        }
        if numbers:
            self._display.update(**numbers | {"env_frames": int(numbers["env_frames"])})

    def finish(self) -> None:
        """Does nothing: the learner has saved the run."""
