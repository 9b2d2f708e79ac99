"""The role that acts: environments, the learner's weights, unrolls to replay."""

import os
import secrets
from collections.abc import Mapping

from laser_tf import types
from laser_tf.cluster import replay_role, role, run_state, weights
from laser_tf.environments import factory
from laser_tf.host import hardware
from laser_tf.training import acting, assembly, run_config

# A learner on the same machine goes first: its update is as slow as the thread that waits longest
# for a core, and actors that are faster than the learner only wait.
_NICENESS = 10


class ActorRole(role.Role):
    """Acts until it is told to stop."""

    def __init__(
        self,
        context: role.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        index: int,
    ):
        """Connects to replay and creates environments and an agent.

        Args:
          context: Connection to the run.
          config: Configuration of the run, with the environments of one actor.
          spec: Specs of the environment.
          index: Index of the actor among all actors, from 0.
        """
        self._context = context
        os.nice(_NICENESS)
        # With entropy, so that a restarted actor does not repeat the previous one's episodes.
        seeds = acting.draw_seeds(config.run.seed, index, secrets.randbits(48))
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        agent = assembly.build_agent(
            config, spec, dtype, seeds.actions, actor=index, actors=config.cluster.actors
        )
        self._weights = weights.Subscriber(context, agent.acting_variables)
        signature = assembly.unroll_signature(config, spec, agent)
        replay = replay_role.connect_actor(context, config.replay, signature)
        environment = factory.make_environment(
            config.environment,
            seed=seeds.environment,
            fault_folder=context.workdir if context.workdir.is_dir() else None,
        )
        self._actor = acting.make_actor(
            config,
            environment,
            agent,
            replay,
            signature,
            member=0,
            refresh=self._weights.refresh,
            on_episode=context.add_episode,
        )

    def run(self) -> run_state.Status:
        """See `role.Role`.

        Raises:
          EnvironmentFailedError: If the environments cannot continue.
        """
        self._context.status = run_state.Status.RUNNING
        self._actor.run(self._context.stop)
        return run_state.Status.STOPPED

    def metrics(self) -> Mapping[str, float]:
        """Returns steps, faults and the age of the weights."""
        actor = self._actor
        self._context.detail = actor.state
        self._context.may_hang = actor.part == "environment"
        return {
            "agent_steps": float(actor.agent_steps),
            role.TIME_STEPS: float(actor.time_steps),
            "learner_updates": float(self._weights.learner_updates),
            **actor.pace_metrics(),
            **actor.fault_metrics(),
        }
