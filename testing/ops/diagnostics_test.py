import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.ops import diagnostics

T, B, F = 5, 3, 4


class DeadFractionTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._features = np.random.default_rng(0).uniform(0.1, 1, [T, B, F]).astype(np.float32)
        self._mask = np.random.default_rng(1).uniform(size=[T, B]) < 0.5

    def _fraction(self) -> float:
        features = tf.constant(self._features)
        return float(diagnostics.dead_fraction(features, tf.constant(self._mask)).value)

    def test_features_at_0_in_all_unmasked_steps_count_as_dead(self):
        self.assertEqual(self._fraction(), 0)
        self._features[:, :, 2] = 0
        self.assertEqual(self._fraction(), 1 / F)
        self._features[self._mask, 0] = -1
        self.assertEqual(self._fraction(), 2 / F)

    def test_feature_above_0_in_one_step_is_alive(self):
        self._features[:, :, 2] = 0
        step = tuple(np.argwhere(self._mask)[-1])
        self._features[(*step, 2)] = 1e-6
        self.assertEqual(self._fraction(), 0)

    def test_masked_steps_are_not_read(self):
        self._features[~self._mask] = np.nan
        self._features[self._mask, 1] = 0
        self.assertEqual(self._fraction(), 1 / F)

    def test_empty_mask_gives_nan(self):
        self._mask[:] = False
        self.assertTrue(np.isnan(self._fraction()))


if __name__ == "__main__":
    absltest.main()
