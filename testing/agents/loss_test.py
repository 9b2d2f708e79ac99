"""Tests that the losses of all agents ignore masked steps, and that XLA compiles them."""

from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.agents import base, registry
from testing.agents import unrolls

T, B, V, A = 6, 4, 3, 3
DISCRETE = specs.DiscreteArray(A)
CONTINUOUS = specs.BoundedArray([2], np.float32, [-1.0, 0.0], [1.0, 4.0])
PRODUCT = types.ProductSpec([DISCRETE, CONTINUOUS, specs.DiscreteArray(2)])
FREE = {"entropy_cost": 0.0}
WIDE = {"trust_region": "behaviour", "kl_threshold": 10.0}
SMALL = {"hidden_units": 4}
CASES = (
    ("laser", DISCRETE, {"trust_region": "none"}),
    ("laser", DISCRETE, WIDE),
    ("laser", CONTINUOUS, {"trust_region": "none"}),
    ("laser", CONTINUOUS, WIDE),
    ("laser", PRODUCT, WIDE),
    ("acer", DISCRETE, {}),
    ("acer", CONTINUOUS, FREE),
    ("a3c", DISCRETE, {"importance": "truncated"}),
    ("a3c", CONTINUOUS, FREE),
    ("a3c", PRODUCT, {"importance": "truncated", "trust_region": True}),
    ("r2d2", DISCRETE, SMALL),
    ("reactor", DISCRETE, SMALL | {"policy_gradient": "beta_loo"}),
    ("reactor", DISCRETE, SMALL | {"policy_gradient": "tislr", "distributional": False}),
)


def _make(
    kind: str, action: specs.Array, overrides: dict[str, Any], poison: float = 0.5
) -> tuple[base.Agent, types.Unroll]:
    """Returns an agent and an unroll with a termination, a time limit and a lost life."""
    tf.keras.utils.set_random_seed(1)
    values = {"mlp_units": (6,), "normalise_vectors": False, "core": "none", "reward_clip": "none"}
    config = registry.config_class(kind)(**values | overrides)
    spec = types.EnvironmentSpec(specs.Array([V], np.float32), action)
    agent = registry.make(config, base.AgentContext(spec, seed=3))
    ends = {"terminations": [(2, 1)], "time_limits": [(3, 2)], "lost_lives": [(4, 3)]}
    return agent, unrolls.make(agent, spec, T, B, **ends, poison=poison)


def _gradients(agent: base.Agent, unroll: types.Unroll) -> list[np.ndarray]:
    """Returns gradients of the loss in all variables, including target and average networks."""
    variables = [variable for variable in agent.variables if variable.dtype.is_floating]
    return unrolls.gradients(lambda: agent.loss(unroll).loss, variables)


class LossTest(parameterized.TestCase):
    @parameterized.parameters(*CASES)
    def test_masked_steps_change_neither_loss_nor_gradients(self, *case):
        results = []
        for poison in (0.5, np.nan):  # Of the steps between episodes.
            agent, unroll = _make(*case, poison)
            results.append([*tf.nest.flatten(agent.loss(unroll)), *_gradients(agent, unroll)])
        for clean, poisoned in zip(*results, strict=True):
            np.testing.assert_allclose(poisoned, clean, rtol=1e-5, atol=1e-6)
            self.assertTrue(np.isfinite(poisoned).all())

        trained = {variable.ref() for variable in agent.trainable_variables}
        variables = [variable for variable in agent.variables if variable.dtype.is_floating]
        for variable, gradient in zip(variables, results[1][-len(variables) :], strict=True):
            if variable.ref() not in trained:
                np.testing.assert_array_equal(gradient, 0, variable.name)

        env_output = unroll.env_output._replace(is_first=tf.ones([T + 1, B], tf.bool))
        blank = unroll._replace(env_output=env_output)
        output = agent.loss(blank)
        self.assertEqual(output.loss, 0.0)
        self.assertTrue((output.priorities.numpy() > 0).all())
        for gradient in _gradients(agent, blank):
            np.testing.assert_array_equal(gradient, 0)

    @parameterized.parameters(
        ("acer", DISCRETE, {"core": "lstm", "core_size": 4}),
        ("reactor", DISCRETE, SMALL | {"distributional": False}),
    )
    def test_compiled_loss_equals_eager(self, *case):
        agent, unroll = _make(*case)
        compiled = tf.function(lambda unroll: agent.loss(unroll).loss, jit_compile=True)
        np.testing.assert_allclose(compiled(unroll), agent.loss(unroll).loss, rtol=1e-4)


if __name__ == "__main__":
    absltest.main()
