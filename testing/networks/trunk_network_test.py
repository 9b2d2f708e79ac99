"""Tests the checkpoint keys of networks with a trunk."""

import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.networks import policy_network, q_network, trunk_config

SPEC = types.EnvironmentSpec(specs.Array([3], np.float32), specs.DiscreteArray(4))


def _policy(config):
    return policy_network.PolicyNetwork(config, SPEC, "float32", output_size=4, output_scale=1.0)


def _q(config):
    return q_network.QNetwork(config, SPEC, "float32", hidden_units=5)


class TrunkNetworkTest(parameterized.TestCase):
    @parameterized.parameters(_policy, _q)
    def test_checkpoint_keys_are_trunk_and_head(self, make):
        network = make(trunk_config.TrunkConfig(mlp_units=(6,), core="lstm", core_size=4))
        blank = tf.nest.map_structure(tf.constant, observations.padding_steps(SPEC, (1, 1)))
        network(blank, network.initial_state(1))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = tf.train.Checkpoint(network=network).write(f"{folder.name}/weights")
        keys = [name.split("/") for name, _ in tf.train.list_variables(path)]
        parts = {key[1] for key in keys if key[0] == "network"}
        self.assertEqual(parts, {"_trunk", "_head"})


if __name__ == "__main__":
    absltest.main()
