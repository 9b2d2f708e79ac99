"""Tests the inputs of the core."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest
from dm_env import specs

from laser_tf import observations, types
from laser_tf.networks import trunk, trunk_config

SPEC = types.EnvironmentSpec(specs.Array([2], np.float32), specs.DiscreteArray(3))
CONTINUOUS = specs.BoundedArray([2], np.float32, [-2.0, 0.0], [2.0, 10.0])
CONFIG = trunk_config.TrunkConfig(mlp_units=(4,), core="lstm", core_size=5)


def _step(spec: types.EnvironmentSpec, **fields) -> types.EnvOutput:
    """Returns a step in the middle of an episode, [1, 1, ...]."""
    blank = tf.nest.map_structure(tf.constant, observations.padding_steps(spec, (1, 1)))
    return blank._replace(is_first=tf.zeros([1, 1], tf.bool), **fields)


class TrunkTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        tf.keras.utils.set_random_seed(1)
        self._trunk = trunk.Trunk(CONFIG, SPEC, "float32")

    def _features(self, reward: float) -> np.ndarray:
        step = _step(SPEC, reward=tf.fill([1, 1], reward))
        return self._trunk(step, self._trunk.initial_state(1))[0].numpy()

    def test_core_reads_clipped_rewards(self):
        for large, one in ((7.0, 1.0), (-300.0, -1.0)):
            np.testing.assert_array_equal(self._features(large), self._features(one))
        for reward in (-1.0, -0.5, 0.5, 1.0):
            difference = np.abs(self._features(reward) - self._features(0.0)).max()
            self.assertGreater(difference, 1e-3)

    def test_no_core_returns_encoder_features(self):
        config = trunk_config.TrunkConfig(mlp_units=(4,))
        made = trunk.Trunk(config, SPEC, "float32")
        features, state = made(_step(SPEC), made.initial_state(1))
        self.assertEqual((features.shape, state), ([1, 1, 4], ()))


if __name__ == "__main__":
    absltest.main()
