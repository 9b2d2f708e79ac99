"""Tests the inputs of the core, encoded actions, and the checkpoint keys of networks."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.networks import trunk, trunk_config, trunk_network
from testing import folders

SPEC = types.EnvironmentSpec(specs.Array([2], np.float32), specs.DiscreteArray(3))
CONFIG = trunk_config.TrunkConfig(mlp_units=(4,), core="lstm", core_size=5)


def _step(**fields) -> types.EnvOutput:
    """Returns a step in the middle of an episode, [1, 1, ...]."""
    blank = tf.nest.map_structure(tf.constant, observations.padding_steps(SPEC, (1, 1)))
    return blank._replace(is_first=tf.zeros([1, 1], tf.bool), **fields)


class TrunkTest(folders.FolderTest):
    def test_core_reads_clipped_rewards_and_actions(self):
        tf.keras.utils.set_random_seed(1)
        made = trunk.Trunk(CONFIG, SPEC, "float32")

        def features(reward=0.0, action=0):
            step = _step(reward=tf.fill([1, 1], reward), previous_action=tf.fill([1, 1], action))
            return made(step, made.initial_state(1))[0].numpy()

        for large, one in ((7.0, 1.0), (-300.0, -1.0)):
            np.testing.assert_array_equal(features(large), features(one))
        for other in (
            features(-1.0),
            features(-0.5),
            features(0.5),
            features(1.0),
            features(0.0, 2),
        ):
            self.assertGreater(np.abs(other - features()).max(), 1e-3)

    def test_no_core_returns_encoder_features(self):
        made = trunk.Trunk(trunk_config.TrunkConfig(mlp_units=(4,)), SPEC, "float32")
        features, state = made(_step(), made.initial_state(1))
        self.assertEqual((features.shape, state), ([1, 1, 4], ()))

    @parameterized.parameters(
        (specs.DiscreteArray(3), [[2, 0]], [[[0, 0, 1], [1, 0, 0]]]),
        (
            specs.BoundedArray([2], np.float32, [-2, 0], [2, 10]),
            [[[-2.0, 10.0], [1.0, 5.0]]],
            [[[-1, 1], [0.5, 0]]],
        ),
        (specs.BoundedArray([1], np.float32, [3], [3]), [[3.0]], [[0]]),  # Equal bounds.
        (
            types.ProductSpec(
                [specs.DiscreteArray(3), specs.BoundedArray([2], np.float32, [-2, 0], [2, 10])]
            ),
            [[2.0, -2.0, 10.0], [1.0, 1.0, 5.0]],
            [[0, 0, 1, -1, 1], [0, 1, 0, 0.5, 0]],
        ),
    )
    def test_actions_are_one_hot_or_scaled_by_bounds(self, spec, action, expected):
        encoded = trunk.encode_action(spec, tf.constant(action))
        np.testing.assert_allclose(encoded, expected, atol=1e-6)

    @parameterized.parameters(
        (trunk_network.PolicyNetwork, {"output_size": 4, "output_scale": 1.0}),
        (trunk_network.QNetwork, {"hidden_units": 5, "reset_at_life_loss": False}),
    )
    def test_checkpoint_keys_are_trunk_and_head(self, make, settings):
        network = make(CONFIG, SPEC, "float32", **settings)
        network(_step(), network.initial_state(1))
        path = tf.train.Checkpoint(network=network).write(f"{self._folder}/weights")
        keys = [name.split("/") for name, _ in tf.train.list_variables(path)]
        parts = {key[1] for key in keys if key[0] == "network"}
        self.assertEqual(parts, {"_trunk", "_head"})


if __name__ == "__main__":
    absltest.main()
