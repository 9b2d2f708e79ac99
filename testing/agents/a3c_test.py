"""Tests the gradients of A3C, TIS and their trust-region variants against float64 loops."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from testing import numpy_reference
from testing.agents import acer_test, unrolls
from testing.agents.acer_test import B, T


class _Naive(acer_test.Naive):
    """Appendix E.2, given values [T + 1, B]."""

    def __init__(self, agent, unroll, values):
        super().__init__(agent, unroll)
        values = np.asarray(values, np.float64)
        self.weights = numpy_reference.truncated_products(
            np.log(self.rhos()), self.discounts, self.mask, self.config.truncation
        )
        if self.config.importance == "none":
            self.weights[:] = 1.0
        returns = numpy_reference.n_step_returns(
            self.rewards, self.discounts, values, self.mask, n=T
        )
        self.value_errors = np.zeros([T + 1, B])
        for t, b in self.transitions():
            error = self.weights[t, b] * (returns[t, b] - values[t, b])
            self.add(t, b, error * self.score(t, b, self.taken[t, b]))
            self.value_errors[t, b] = -self.weight[b] * error


class A3CTest(parameterized.TestCase):
    @parameterized.product(
        actions=tuple(acer_test.SPECS),
        importance=("none", "truncated"),
        trust_region=(False, True),
    )
    def test_gradient_equals_appendix_e2(self, actions, importance, trust_region):
        agent = acer_test.make_agent(
            actions,
            "a3c",
            importance=importance,
            trust_region=trust_region,
            critic_cost=0.5,
            delta=0.01,
            truncation=0.5,
        )
        unroll = acer_test.make_unroll(agent, actions)

        def values() -> tf.Tensor:
            return agent._critic(acer_test.networks(agent, unroll)[0])[..., 0]

        naive = _Naive(agent, unroll, values())
        self.assertGreater(naive.constrained, 2)
        if importance == "truncated":  # Weights above and below the clip.
            self.assertGreater((naive.weights == 0.5).sum(), 1)
            self.assertGreater((naive.weights < 0.5).sum(), 1)

        def expected() -> tf.Tensor:
            critic = tf.reduce_sum(tf.constant(naive.value_errors, tf.float32) * values())
            policy = naive.policy_loss(acer_test.networks(agent, unroll)[1])
            return policy + agent._config.critic_cost * critic

        unrolls.assert_gradients_equal(
            lambda: agent.loss(unroll).loss, expected, agent.trainable_variables, 5e-4, 5e-4
        )


if __name__ == "__main__":
    absltest.main()
