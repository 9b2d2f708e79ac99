"""The role that acts: environments of its own, the learner's weights, unrolls to replay."""

import contextlib
import os
import secrets
from collections.abc import Mapping

from laser_tf import types
from laser_tf.cluster import replay_access, role_process, weights
from laser_tf.environments import factory
from laser_tf.host import hardware
from laser_tf.training import acting, actor, assembly, run_config

# Below a learner on the same machine: its update is as slow as the thread of it that waits longest
# for a core, and whoever acts faster than it learns only waits for it.
_NICENESS = 10


class ActorRole(role_process.Role):
    """Acts until it is told to stop."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        index: int,
    ):
        """Finds replay and makes environments and an agent.

        Args:
          context: of the role.
          config: of the run, with the environments of one actor.
          spec: of its environment.
          index: of the actor among all.
        """
        self._context = context
        self._index = index
        self._actor: actor.Actor | None = None
        os.nice(_NICENESS)
        with contextlib.suppress(replay_access.StoppedError):
            self._make(config, spec)

    def _make(self, config: run_config.RunConfig, spec: types.EnvironmentSpec) -> None:
        # What a process before this one has drawn is not drawn again.
        seeds = acting.draw_seeds(config.run.seed, self._index, secrets.randbits(48))
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        agent = assembly.build_agent(
            config, spec, dtype, seeds.actions, actor=self._index, actors=config.cluster.actors
        )
        self._weights = weights.Subscriber(self._context, agent.acting_variables)
        signature = assembly.unroll_signature(config, spec, agent)
        replay = replay_access.for_actor(self._context, config.replay, signature, self._index)
        folder = self._context.workdir
        environment = factory.make_environment(
            config.environment,
            seed=seeds.environment,
            fault_folder=folder if folder.is_dir() else None,
        )
        self._actor = acting.make_actor(
            config,
            environment,
            agent,
            replay,
            signature,
            member=0,
            refresh=self._weights.refresh,
            on_episode=self._context.add_episode,
        )

    def run(self) -> str:
        """See `role_process.Role`.

        Raises:
          EnvironmentFailedError: if the environments cannot go on.
        """
        if self._actor:
            self._actor.run(self._context.stop)
        return role_process.TOLD

    def metrics(self) -> Mapping[str, float]:
        """Agent steps, what the actor is at, faults, and how old its weights are."""
        actor = self._actor
        if actor is None:
            return {}
        self._context.state = actor.state
        self._context.is_at_risk = actor.part == "environment"
        return {
            "agent_steps": float(actor.agent_steps),
            role_process.TIME_STEPS: float(actor.time_steps),
            "learner_updates": float(self._weights.learner_updates),
            **actor.pace_metrics(),
            **actor.fault_metrics(),
        }
