import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import epsilon_greedy


class EpsilonGreedyTest(parameterized.TestCase):
    @parameterized.parameters(
        (1, 0.4, 7.0), (2, 0.4, 7.0), (5, 0.4, 7.0), (256, 0.4, 7.0), (4, 0.1, 0.0)
    )
    def test_ladder_matches_the_formula(self, num_envs, base, alpha):
        expected = [base ** (1 + alpha * i / max(1, num_envs - 1)) for i in range(num_envs)]
        for number in (num_envs, tf.constant(num_envs)):  # The batch size may be dynamic.
            np.testing.assert_allclose(
                epsilon_greedy.ladder(number, base, alpha), expected, rtol=1e-5, atol=0
            )

    def test_actions_are_uniform_with_probability_epsilon(self):
        epsilons = np.repeat([0.0, 0.3, 1.0], 20_000).astype(np.float32)
        q_values = tf.tile(tf.constant([[1.0, -2.0, 3.0, 0.0]]), [60_000, 1])
        specs = (tf.TensorSpec([None, 4]), tf.TensorSpec([None]), tf.TensorSpec([2], tf.int32))
        sample = tf.function(epsilon_greedy.sample, input_signature=specs)
        actions = sample(q_values, tf.constant(epsilons), tf.constant([1, 2]))
        shares = [
            np.bincount(actions.numpy()[start : start + 20_000], minlength=4) / 20_000
            for start in (0, 20_000, 40_000)
        ]
        np.testing.assert_array_equal(shares[0], [0, 0, 1, 0])
        np.testing.assert_allclose(shares[1], [0.075, 0.075, 0.775, 0.075], atol=0.015)
        np.testing.assert_allclose(shares[2], [0.25] * 4, atol=0.02)  # 6 standard deviations


if __name__ == "__main__":
    absltest.main()
