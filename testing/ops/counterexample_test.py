"""Tests of learning on the counterexample of LASER, proposition 2, until convergence.

The problem is a bandit with two arms: Q = (2, 5), replay from mu = (0.9, 0.1), and an initially
uniform pi. Expectations are exact. Each update includes both arms, online and replayed, weighted by
their probability.
"""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from configs import laser
from laser_tf.agents import laser_config
from laser_tf.ops import categorical, policy_gradient, trust_region, vtrace

Q, MU, START = (2.0, 5.0), (0.9, 0.1), (0.5, 0.5)
ONLINE = 0.125  # online share of a batch, alpha of section 3
STEPS, STEP_SIZE = 800, 1.0
ARMS = tf.constant([0, 1, 0, 1])  # two online batch entries, then two replayed ones


@tf.function
def _ascend(logits, value, kl_threshold, online, baseline_cost):
    """Returns the policy and value after LASER updates of logits [2] and value [] of one state.

    An infinite `kl_threshold` disables the trust region. A `baseline_cost` of 0 keeps the value at
    0, so that no baseline is subtracted, as in the paper.
    """
    rewards = tf.gather(tf.constant(Q), ARMS)[None]
    for _ in tf.range(STEPS):
        behaviour = tf.concat([tf.tile(logits[None], [2, 1]), tf.math.log([MU, MU])], axis=0)
        target = tf.tile(logits[None], [4, 1])
        weights = tf.stack([online, online, 1 - online, 1 - online])
        weights *= tf.gather(tf.nn.softmax(behaviour), ARMS, batch_dims=1)
        relevance = trust_region.implied_relevance(target, behaviour)
        trusted = (relevance < kl_threshold)[None]
        output = vtrace.vtrace(
            categorical.log_importance_ratio(target, behaviour, ARMS)[None],
            discounts=tf.zeros([1, 4]),  # each reward ends the episode
            rewards=rewards,
            values=tf.fill([2, 4], value),
            trusted=trusted,
        )
        with tf.GradientTape() as tape:
            tape.watch([logits, value])
            loss = policy_gradient.policy_gradient_loss(
                categorical.log_probability(tf.tile(logits[None], [4, 1]), ARMS)[None],
                weights * output.rhos * output.advantages,
                trusted,
            ) + baseline_cost * policy_gradient.baseline_loss(
                tf.sqrt(weights)[None] * value, tf.sqrt(weights) * output.values, trusted
            )
        logits_gradient, value_gradient = tape.gradient(loss, [logits, value])
        logits -= STEP_SIZE * logits_gradient
        value -= STEP_SIZE * value_gradient
    return tf.nn.softmax(logits), value


def _final_probability(kl_threshold=np.inf, online=ONLINE, baseline_cost=0.0, start=START):
    """Returns the final probability of the best arm."""
    policy, _ = _ascend(
        *map(tf.constant, (np.log(start).astype(np.float32), 0.0, kl_threshold)),
        *map(tf.constant, (online, baseline_cost)),
    )
    return float(policy[1])


class CounterexampleTest(parameterized.TestCase):
    @parameterized.parameters((np.inf, 7 / 22), (0.3, 7 / 22), (0.1, 0.983), (0.03, 0.995))
    def test_threshold_determines_the_final_policy(self, kl_threshold, probability):
        # If the trust region rejects replay, online data alone leads to the best arm, until pi~_mu
        # is nearly deterministic and replay is trusted again. Trusted replay leads to the policy
        # with equal Q^alpha: 2 = 0.125 * 5 + 0.875 * 5 * 0.1 / pi.
        actual = _final_probability(kl_threshold)
        self.assertAlmostEqual(actual, probability, delta=2e-3)

    @parameterized.parameters(START, MU)
    def test_default_threshold_finds_the_best_arm(self, *start):
        # This includes a start at mu, where all replay is trusted initially.
        agents = (laser_config.LaserConfig(), laser.get_config("atari").agent)
        for threshold in {agent.kl_threshold for agent in agents}:
            self.assertGreater(_final_probability(threshold, start=start), 0.95)

    def test_learned_baseline_needs_no_trust_region(self):
        # V converges to E_pi~[Q], which is between the values of the arms. The gradient of
        # sum_a min(mu, pi)(a) (Q(a) - V) log pi(a) then raises the better arm for any pi.
        for start in (START, (0.99, 0.01)):
            final = _final_probability(online=0.0, baseline_cost=0.5, start=start)
            self.assertGreater(final, 0.999)
        without = _final_probability(online=0.0)
        self.assertAlmostEqual(without, 0.25, delta=1e-3)  # 2 = 5 * 0.1 / pi


if __name__ == "__main__":
    absltest.main()
