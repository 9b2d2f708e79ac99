"""The role that steps environments with the learner's weights and writes unrolls to replay."""

import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray
import tensorflow as tf

from laser_tf import array_function, types
from laser_tf.cluster import replay_role, role, run_state
from laser_tf.environments import factory
from laser_tf.host import hardware
from laser_tf.training import acting, assembly, run_config

# Actors yield to a learner on the same machine: an update is as slow as its slowest thread, and
# actors that are faster than the learner would only wait for it.
_NICENESS = 10
_TRANSFER_TIMEOUT_SECONDS = 30.0  # Of weights from another machine.


class ActorRole(role.Role):
    """Acts until a stop is requested."""

    def __init__(
        self,
        context: role.RoleContext,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        index: int,
    ):
        """Connects to replay and creates the environments and the agent of actor `index`."""
        super().__init__(context, config)
        os.nice(_NICENESS)
        # With random bits, so that a restarted actor does not repeat the episodes of its
        # previous process.
        entropy = config.run.seed, index, secrets.randbits(48)
        environment_seed, action_seed = acting.derive_seeds(*entropy)
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        agent = assembly.build_agent(
            config, spec, dtype, action_seed, actor=index, actors=config.cluster.actors
        )
        self._weights = Subscriber(context, agent.acting_variables)
        signature = assembly.unroll_signature(config, spec, agent)
        replay = replay_role.connect(context, config.replay, signature)
        environment = factory.make_environment(
            config.environment,
            seed=environment_seed,
            traceback_directory=context.traceback_directory,
        )
        self._actor = acting.make_actor(
            config,
            environment,
            agent,
            replay,
            signature,
            member_index=0,
            refresh=self._weights.refresh,
            on_episode=context.episodes.append,
        )

    def run(self) -> bool:
        """See `role.Role`."""
        self._context.status = run_state.Status.RUNNING
        self._actor.run(self._context.stop_requested)
        return False

    def metrics(self) -> Mapping[str, float]:
        """Returns metrics for the heartbeat; also sets the other fields of the context for it."""
        actor = self._actor
        self._context.detail = actor.activity
        self._context.must_progress = actor.phase == "environment"
        return {
            "agent_steps": float(actor.agent_steps),
            role.ENV_CALLS: float(actor.env_calls),
            "learner_updates": float(self._weights.learner_updates),
            **actor.metrics(),
        }


class Subscriber:
    """Copies the learner's newest weights into an actor's agent."""

    def __init__(self, context: role.RoleContext, variables: Sequence[tf.Variable]):
        """Creates the subscriber; `variables` match the published values in order and shape."""
        self._context = context
        self._variables = tuple(variables)
        self._assign = array_function.ArrayFunction(self._assign_all)
        self._pending_call: Any = None
        self.learner_updates = -1  # Of the current weights; -1 before the first weights.

    def _assign_all(self, values: Sequence[tf.Tensor]) -> tf.Tensor:
        for variable, value in zip(self._variables, values, strict=True):
            variable.assign(value)
        return tf.constant(len(values))

    def refresh(self) -> int:
        """Copies the learner's weights if they have changed; returns their number of updates.

        The first call blocks until weights exist, and raises StoppedError if a stop is requested.
        Later calls block only while newer weights are transferred.
        """
        while self.learner_updates < 0:
            self._copy(self._context.wait_for("newest_weights", -1, what="the learner's weights"))
            self._context.status = run_state.Status.RUNNING
        if self._pending_call is None:
            self._pending_call = self._context.shared_state.newest_weights.remote(
                self.learner_updates
            )
        elif ray.wait([self._pending_call], timeout=0)[0]:
            newest, self._pending_call = ray.get(self._pending_call), None
            if newest:
                self._copy(newest)
        return self.learner_updates

    def _copy(self, newest: run_state.PublishedWeights) -> None:
        try:
            values: list[np.ndarray] = ray.get(
                newest.boxed_reference[0], timeout=_TRANSFER_TIMEOUT_SECONDS
            )
        except (ray.exceptions.ObjectLostError, ray.exceptions.GetTimeoutError) as error:
            # The learner that published the weights has died; the current weights remain in use.
            logging.info(
                "Cannot fetch the weights of learner update %d (%s); acting continues without them",
                newest.learner_updates,
                type(error).__name__,
            )
            self._context.stop_requested.wait(1.0)
            return
        self._assign(values)
        self.learner_updates = newest.learner_updates
