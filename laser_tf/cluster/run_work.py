"""A run as the work of a fleet: replay, learners, actors and an evaluator."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from laser_tf import types
from laser_tf.cluster import fleet, role, run_state
from laser_tf.monitoring import progress
from laser_tf.training import run_config

if TYPE_CHECKING:  # It imports TensorFlow.
    from laser_tf.training import initial_weights

PROGRESS = "progress/"  # Prefix of the learner's metrics for the progress display.
_LEARNER = "learner"


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
        super().__init__(list(_role_specs(config, env_spec, initial)), display)

    def is_finished(self, roles: fleet.SupervisedRoles) -> bool:
        """Returns whether the learner has spent its budget."""
        return roles[_LEARNER].is_done

    def update(self, roles: fleet.SupervisedRoles, heartbeats: fleet.Heartbeats) -> None:
        """Shows the learner's progress; before the first update, what each role does."""
        learner = heartbeats.get(_LEARNER)
        numbers: dict[str, Any] = {
            name.removeprefix(PROGRESS): value
            for name, value in (learner.metrics.items() if learner else ())
            if name.startswith(PROGRESS)
        }
        if numbers:
            numbers["env_frames"] = int(numbers["env_frames"])
            self.display.update(progress.Progress(**numbers))
        else:
            self.display.show_startup(
                {
                    name: supervised.activity(heartbeats.get(name))
                    for name, supervised in roles.items()
                }
            )


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


def _role_specs(
    config: run_config.RunConfig,
    env_spec: types.EnvironmentSpec,
    initial: "initial_weights.InitialWeights | None",
) -> Iterator[role.RoleSpec]:
    cluster = config.cluster
    if not config.replay.address:
        yield replay_spec(config, env_spec)
    for rank in range(cluster.learners):
        first_weights = None if rank else initial
        yield role.RoleSpec(
            f"{_LEARNER}_{rank}" if rank else _LEARNER,
            "laser_tf.cluster.learner_role:LearnerRole",
            {"config": config, "spec": env_spec, "rank": rank, "initial": first_weights},
            role.StopStage.LEARNERS,
            is_required=True,
            num_cpus=cluster.learner_cpus,
            num_gpus=cluster.learner_gpus,
        )
    num_envs = cluster.envs_per_actor or config.environment.num_envs
    environment = dataclasses.replace(config.environment, num_envs=num_envs)
    actor_config = dataclasses.replace(config, environment=environment)
    for index in range(cluster.actors):
        yield role.RoleSpec(
            f"{run_state.ACTOR}{index:02d}",
            "laser_tf.cluster.actor_role:ActorRole",
            {"config": actor_config, "spec": env_spec, "index": index},
            role.StopStage.ACTING,
            stop_seconds=20.0,  # Short, so that an environment that hangs delays no stop.
            group="actors",
            num_cpus=cluster.actor_cpus,
            # The environments of several tasks take turns.
            max_step_seconds=environment.max_step_seconds * len(environment.tasks),
            num_threads=1,
        )
    if config.run.evaluate_every_env_frames:
        yield role.RoleSpec(
            "evaluator",
            "laser_tf.cluster.evaluator_role:EvaluatorRole",
            {"config": config},
            role.StopStage.ACTING,
            stop_seconds=0.0,
            num_cpus=cluster.evaluator_cpus,
            num_threads=1,
        )
