"""Agents that learn toward an older copy of their own network: R2D2 and Reactor."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from laser_tf import observations, types
from laser_tf.agents import base


class TargetNetworkAgent(base.Agent):
    """An online network, its target network, and the states of both after the burn-in.

    The networks map a time-major `EnvOutput`, [T, B, ...], and a core state to their output and the
    next core state.
    """

    def _create_networks(
        self, make: Callable[[], Any], context: base.Context, target_period: int
    ) -> None:
        """Creates both networks with all their weights, the target's equal to the online one's.

        Args:
          make: returns one of them.
          context: of the agent.
          target_period: updates from one copy to the next.
        """
        self._online, self._target = make(), make()
        self._updates = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._target_period = target_period
        self._burn_in = context.burn_in
        blank = tf.nest.map_structure(tf.constant, observations.blank(context.spec, (1, 1)))
        for network in (self._online, self._target):
            network(blank, network.initial_state(1))  # creates its weights
        self._copy_to_target()

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        """The online network's: what the learner optimises and actors get."""
        return self._online.trainable_variables

    @property
    def acting_variables(self) -> tuple[tf.Variable, ...]:
        """The online network's, with the moments that observations are normalised by."""
        return (*self._online.trainable_variables, *self._online.moments)

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """See `base.Agent`: float32 [B, ...], of all the network's cores."""
        return self._online.initial_state(batch_size)

    def next_state(self, env_output: types.EnvOutput, core_state: Any) -> Any:
        """See `base.Agent`."""
        return self._online(env_output, core_state)[1]

    def after_update(self) -> None:
        """Copies the weights to the target network once in `target_period` updates.

        Moments that observations are normalised by are copied each time: they are no weights, and a
        target network that reads other inputs is no older copy of the online one.
        """
        for target, online in zip(self._target.moments, self._online.moments, strict=True):
            target.assign(online)
        updates = self._updates.assign_add(1)
        due = tf.equal(updates % self._target_period, 0)
        tf.cond(due, self._copy_to_target, lambda: None)

    def _copy_to_target(self) -> None:
        for target, online in zip(
            self._target.trainable_variables, self._online.trainable_variables, strict=True
        ):
            target.assign(online)

    def _after_burn_in(self, unroll: types.Unroll) -> types.Unroll:
        """What is learned from."""
        env_output, agent_output = tf.nest.map_structure(
            lambda leaf: leaf[self._burn_in :], (unroll.env_output, unroll.agent_output)
        )
        return unroll._replace(env_output=env_output, agent_output=agent_output)

    def _state_after_burn_in(self, network: Any, unroll: types.Unroll) -> Any:
        """The core state after the burn-in of one of the networks, without gradient."""
        # Without a state to carry on there is nothing to burn in.
        if not self._burn_in or not tf.nest.flatten(unroll.core_state):
            return unroll.core_state
        before = tf.nest.map_structure(lambda leaf: leaf[: self._burn_in], unroll.env_output)
        return tf.nest.map_structure(tf.stop_gradient, network(before, unroll.core_state)[1])
