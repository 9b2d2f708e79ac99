import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import diagnostics

T, B, F = 5, 3, 4


class DiagnosticsTest(parameterized.TestCase):
    def test_features_that_are_zero_at_all_steps_are_dead(self):
        features = np.random.default_rng(0).uniform(0.1, 1, [T, B, F]).astype(np.float32)
        mask = np.random.default_rng(1).uniform(size=[T, B]) < 0.5
        features[~mask] = np.nan  # not read
        features[mask, 0], features[mask, 1], features[mask, 2], features[mask, 3] = 0, 0, 0, -1
        features[(*np.argwhere(mask)[-1], 2)] = 1e-6  # alive in one step
        self.assertEqual(diagnostics.dead_fraction(features, mask).value, 2 / F)
        self.assertTrue(np.isnan(diagnostics.dead_fraction(features, mask & False).value))

    def test_priorities_are_mean_losses_above_a_floor(self):
        values, targets = tf.constant([[1.0, 9.0], [2.0, np.nan]]), tf.constant([[3.0, 0], [5, 0]])
        mask = tf.constant([[True, False], [True, False]])
        priorities = diagnostics.critic_priorities(values, targets, mask)
        np.testing.assert_allclose(priorities, [1e-3 + (2 + 4.5) / 2, 1e-3], rtol=1e-6)


if __name__ == "__main__":
    absltest.main()
