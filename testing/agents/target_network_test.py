"""Tests the target network and burn-in of R2D2 and Reactor."""

from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.agents import base, registry
from testing import folders
from testing.agents import unrolls

T, B, V, A = 6, 4, 3, 3
SPEC = types.EnvironmentSpec(specs.Array([V], np.float32), specs.DiscreteArray(A))
KINDS = ("r2d2", "reactor")


def _agent(kind: str, burn_in: int = 2, **overrides) -> Any:
    tf.keras.utils.set_random_seed(1)
    values = {"mlp_units": (6,), "normalise_vectors": False, "core_size": 5, "hidden_units": 4}
    config = registry.config_class(kind)(**values | overrides)
    return registry.make(config, base.AgentContext(SPEC, burn_in=burn_in, seed=3))


def _is_copied(agent: Any) -> bool:
    """Returns whether target and online weights are equal; fails if only some are."""
    online, target = agent._online.trainable_variables, agent._target.trainable_variables
    (same,) = {np.array_equal(a, b) for a, b in zip(online, target, strict=True)}
    return same


class TargetNetworkTest(folders.FolderTest):
    @parameterized.parameters(*KINDS)
    def test_target_is_copied_periodically(self, kind):
        agent = _agent(kind, target_period=3)
        self.assertTrue(_is_copied(agent))
        online = agent._online.trainable_variables
        self.assertEqual([v.ref() for v in agent.trainable_variables], [v.ref() for v in online])
        copied = []
        for update in range(1, 8):
            for variable in online:
                variable.assign_add(tf.ones_like(variable))
            agent.after_update()
            if _is_copied(agent):
                copied.append(update)
        self.assertEqual(copied, [3, 6])

    @parameterized.parameters(*KINDS)
    def test_both_networks_use_same_moments(self, kind):
        agent = _agent(kind, normalise_vectors=True, target_period=100)
        before = agent._online.moments[0].numpy()
        agent.update_normalisers(unrolls.make(agent, SPEC, T, B).env_output)
        self.assertTrue(np.any(agent._online.moments[0] != before))
        for one, other in zip(agent._online.moments, agent._target.moments, strict=True):
            np.testing.assert_array_equal(one, other)
        acting = {variable.ref() for variable in agent.acting_variables}
        self.assertTrue({moment.ref() for moment in agent._online.moments} <= acting)

    @parameterized.parameters(*KINDS)
    def test_checkpoint_restores_target_and_update_count(self, kind):
        agent, other = _agent(kind, target_period=2), _agent(kind, target_period=2)
        unroll = unrolls.make(agent, SPEC, T, B)
        agent.after_update()
        path = tf.train.Checkpoint(agent=agent).write(f"{self._folder}/c")
        for network in (other._online, other._target):
            unrolls.shake(network.trainable_variables, seed=5)
        tf.train.Checkpoint(agent=other).read(path).assert_consumed()
        np.testing.assert_array_equal(agent.loss(unroll).loss, other.loss(unroll).loss)
        for one in (agent, other):
            one.after_update()  # The second update copies the weights.
            self.assertTrue(_is_copied(one))

    @parameterized.product(kind=KINDS, burn_in=(0, 2))
    def test_burn_in_updates_core_state_without_gradient(self, kind, burn_in):
        agent = _agent(kind, burn_in)
        unroll = unrolls.make(agent, SPEC, T, B)
        for network in (agent._online, agent._target):
            expected = unroll.core_state
            for step in range(burn_in):
                one = unrolls.at(unroll.env_output, slice(step, step + 1))
                expected = network(one, expected)[1]
            with tf.GradientTape() as tape:
                state = agent._state_after_burn_in(network, unroll)
                total = tf.add_n([tf.reduce_sum(leaf) for leaf in tf.nest.flatten(state)])
            tf.nest.map_structure(
                lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), expected, state
            )
            for gradient in tape.gradient(total, network.trainable_variables):
                self.assertIsNone(gradient)


if __name__ == "__main__":
    absltest.main()
