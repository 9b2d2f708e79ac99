"""A run as the work of a fleet: replay, learners, actors and an evaluator."""

import dataclasses
from typing import TYPE_CHECKING, Any

from laser_tf import types
from laser_tf.cluster import fleet, role, run_state
from laser_tf.monitoring import progress
from laser_tf.training import run_config

if TYPE_CHECKING:  # It imports TensorFlow.
    from laser_tf.training import initial_weights

PROGRESS = "progress/"  # Prefix of the learner's metrics for the progress display.
_LEARNER = "learner"
_ACTORS_STOP_SECONDS = 20.0  # Short, so that an environment that hangs delays no stop.


class RunWork(fleet.Work):
    """Ends when the learner has spent its budget, and shows its progress; see `fleet.Work`."""

    display: progress.ProgressDisplay

    def __init__(
        self,
        config: run_config.RunConfig,
        env_spec: types.EnvironmentSpec,
        initial: "initial_weights.InitialWeights | None",
        display: progress.ProgressDisplay,
    ):
        """Lists the roles. With neither `initial` nor a checkpoint, weights are random."""
        role_specs = [] if config.replay.address else [replay_spec(config, env_spec)]
        role_specs += [
            _learner_spec(config, env_spec, initial, rank)
            for rank in range(config.cluster.learners)
        ]
        role_specs += [
            _actor_spec(config, env_spec, index) for index in range(config.cluster.actors)
        ]
        if config.run.evaluate_every_env_frames:
            role_specs.append(_evaluator_spec(config))
        super().__init__(role_specs, display)

    def is_finished(self, roles: fleet.SupervisedRoles) -> bool:
        """Returns whether the learner has spent its budget."""
        return roles[_LEARNER].is_done

    def update(self, roles: fleet.SupervisedRoles, heartbeats: fleet.Heartbeats) -> None:
        """Shows the learner's progress."""
        if _LEARNER not in heartbeats:
            return
        numbers: dict[str, Any] = {
            name.removeprefix(PROGRESS): value
            for name, value in heartbeats[_LEARNER].metrics.items()
            if name.startswith(PROGRESS)
        }
        if numbers:
            numbers["env_frames"] = int(numbers["env_frames"])
            self.display.update(progress.Progress(**numbers))


def replay_spec(
    config: run_config.RunConfig, env_spec: types.EnvironmentSpec, **arguments: Any
) -> role.RoleSpec:
    """Returns the spec of the replay role, with further arguments of `replay_role.ReplayRole`."""
    return role.RoleSpec(
        "replay",
        "laser_tf.cluster.replay_role:ReplayRole",
        {"config": config, "spec": env_spec, **arguments},
        role.StopStage.REPLAY,
        is_required=True,
        num_cpus=config.cluster.replay_cpus,
    )


def _learner_spec(
    config: run_config.RunConfig,
    env_spec: types.EnvironmentSpec,
    initial: "initial_weights.InitialWeights | None",
    rank: int,
) -> role.RoleSpec:
    return role.RoleSpec(
        f"{_LEARNER}_{rank}" if rank else _LEARNER,
        "laser_tf.cluster.learner_role:LearnerRole",
        {"config": config, "spec": env_spec, "rank": rank, "initial": None if rank else initial},
        role.StopStage.LEARNERS,
        is_required=True,
        num_cpus=config.cluster.learner_cpus,
        num_gpus=config.cluster.learner_gpus,
    )


def _actor_spec(
    config: run_config.RunConfig, env_spec: types.EnvironmentSpec, index: int
) -> role.RoleSpec:
    num_envs = config.cluster.envs_per_actor or config.environment.num_envs
    environment = dataclasses.replace(config.environment, num_envs=num_envs)
    own_config = dataclasses.replace(config, environment=environment)
    return role.RoleSpec(
        f"{run_state.ACTOR}{index:02d}",
        "laser_tf.cluster.actor_role:ActorRole",
        {"config": own_config, "spec": env_spec, "index": index},
        role.StopStage.ACTING,
        stop_seconds=_ACTORS_STOP_SECONDS,
        group="actors",
        num_cpus=config.cluster.actor_cpus,
        max_step_seconds=config.environment.max_step_seconds,
        num_threads=1,
    )


def _evaluator_spec(config: run_config.RunConfig) -> role.RoleSpec:
    return role.RoleSpec(
        "evaluator",
        "laser_tf.cluster.evaluator_role:EvaluatorRole",
        {"config": config},
        role.StopStage.ACTING,
        stop_seconds=0.0,
        num_cpus=config.cluster.evaluator_cpus,
        num_threads=1,
    )
