"""Parts that R2D2 and Reactor share: a target network, burn-in and losses of sequences."""

from typing import Any

import tensorflow as tf

from laser_tf import observations, types
from laser_tf.agents import base
from laser_tf.ops import joint_batch


class TargetNetworkAgent(base.Agent):
    """Agent with an online network, a target network and burn-in of their core states."""

    def _create_networks(
        self, network_class: type, config: Any, context: base.AgentContext, **settings: Any
    ) -> None:
        """Creates online and target network with equal weights."""
        self._online, self._target = (
            network_class(config, context.spec, context.dtype, **settings) for _ in range(2)
        )
        self._updates = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._target_period = config.target_period
        self._burn_in = context.burn_in
        blank = tf.nest.map_structure(tf.constant, observations.padding_steps(context.spec, (1, 1)))
        for network in (self._online, self._target):
            network(blank, network.initial_state(1))  # Creates the weights.
        self._copy_to_target()

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        """Returns the weights of the online network."""
        return self._online.trainable_variables

    @property
    def acting_variables(self) -> tuple[tf.Variable, ...]:
        """Returns the variables of the online network."""
        return self._online.variables

    @property
    def _acting_network(self) -> Any:
        return self._online

    @property
    def _second_network(self) -> Any:
        return self._target

    def after_update(self) -> None:
        """Copies the weights to the target network every `target_period` updates."""
        updates = self._updates.assign_add(1)
        is_due = tf.equal(updates % self._target_period, 0)
        tf.cond(is_due, self._copy_to_target, lambda: None)

    def _copy_to_target(self) -> None:
        for target, online in zip(
            self._target.trainable_variables, self._online.trainable_variables, strict=True
        ):
            target.assign(online)

    def _drop_burn_in(self, unroll: types.Unroll) -> types.Unroll:
        """Returns the unroll without the steps of the burn-in."""
        env_output, agent_output = tf.nest.map_structure(
            lambda leaf: leaf[self._burn_in :], (unroll.env_output, unroll.agent_output)
        )
        return unroll._replace(env_output=env_output, agent_output=agent_output)

    def _state_after_burn_in(self, network: Any, unroll: types.Unroll) -> Any:
        """Computes a network's core state after the burn-in, without gradient."""
        # A feed-forward network has no core state to burn in.
        if not self._burn_in or not tf.nest.flatten(unroll.core_state):
            return unroll.core_state
        burn_in_steps = tf.nest.map_structure(lambda leaf: leaf[: self._burn_in], unroll.env_output)
        _, core_state = network(burn_in_steps, unroll.core_state)
        return tf.nest.map_structure(tf.stop_gradient, core_state)


def sequence_mean(unroll: types.Unroll, losses: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Sums losses [T, B] over time and averages the weighted sums over the joint batch."""
    sums = tf.reduce_sum(tf.where(mask, losses, 0.0), axis=0)
    return tf.reduce_mean(unroll.importance_weight * sums) / joint_batch.num_replicas()
