"""Tests of epsilon-greedy exploration."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import epsilon_greedy


class EpsilonGreedyTest(parameterized.TestCase):
    @parameterized.parameters((2, 0.4, 7.0), (5, 0.4, 7.0), (256, 0.4, 7.0), (4, 0.1, 0.0))
    def test_ladder_matches_the_formula(self, num_envs, base, alpha):
        expected = [base ** (1 + alpha * i / (num_envs - 1)) for i in range(num_envs)]
        np.testing.assert_allclose(
            epsilon_greedy.ladder(num_envs, base, alpha), expected, rtol=1e-5, atol=0
        )

    @parameterized.parameters(1, 2, 5, 256)
    def test_number_of_environments_may_be_a_tensor(self, num_envs):
        @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
        def ladder(num_envs):
            return epsilon_greedy.ladder(num_envs, 0.4, 7.0)

        np.testing.assert_allclose(
            ladder(num_envs), epsilon_greedy.ladder(num_envs, 0.4, 7.0), rtol=1e-6
        )

    def test_batch_size_may_be_dynamic(self):
        @tf.function(
            input_signature=[
                tf.TensorSpec([None, 3]),
                tf.TensorSpec([None]),
                tf.TensorSpec([2], tf.int32),
            ]
        )
        def sample(q_values, epsilons, seed):
            return epsilon_greedy.sample(q_values, epsilons, seed)

        for size in (1, 7):
            arguments = (tf.eye(size, 3), tf.fill([size], 0.5), tf.constant([1, 2]))
            np.testing.assert_array_equal(sample(*arguments), epsilon_greedy.sample(*arguments))

    def test_single_environment_gets_the_base(self):
        np.testing.assert_allclose(epsilon_greedy.ladder(1, 0.4, 7.0), [0.4], rtol=1e-6)

    def test_actions_are_uniform_with_probability_epsilon(self):
        epsilons = np.repeat([0.0, 0.3, 1.0], 20_000).astype(np.float32)
        q_values = tf.tile(tf.constant([[1.0, -2.0, 3.0, 0.0]]), [60_000, 1])
        actions = epsilon_greedy.sample(q_values, tf.constant(epsilons), tf.constant([1, 2]))
        shares = [
            np.bincount(actions.numpy()[start : start + 20_000], minlength=4) / 20_000
            for start in (0, 20_000, 40_000)
        ]
        np.testing.assert_array_equal(shares[0], [0, 0, 1, 0])
        np.testing.assert_allclose(shares[1], [0.075, 0.075, 0.775, 0.075], atol=0.015)
        np.testing.assert_allclose(shares[2], [0.25] * 4, atol=0.02)  # 6 standard deviations


if __name__ == "__main__":
    absltest.main()
