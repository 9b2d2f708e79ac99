"""Tests Reactor's network: table 3, gradients, uniform share and core states."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.networks import reactor_network, trunk_config

R, B, A, N = 5, 3, 4, 7
SPEC = types.EnvironmentSpec(specs.Array([2], np.float32), specs.DiscreteArray(A))
CONFIG = trunk_config.TrunkConfig(mlp_units=(6,), core="lstm", core_size=5, normalise_vectors=False)


def _steps(rows=R, seed=0, **fields):
    """Returns steps in the middle of episodes, [rows, B, ...]."""
    blank = tf.nest.map_structure(tf.constant, observations.padding_steps(SPEC, (rows, B)))
    observation = np.random.default_rng(seed).normal(size=[rows, B, 2]).astype(np.float32)
    middle = {"observation": tf.constant(observation), "is_first": tf.zeros([rows, B], tf.bool)}
    return blank._replace(**(middle | fields))


def _network(config=CONFIG, spec=SPEC, bins=N, uniform_share=0.01):
    tf.keras.utils.set_random_seed(1)
    return reactor_network.ReactorNetwork(
        config, spec, "float32", bins=bins, hidden_units=32, uniform_share=uniform_share
    )


def _call(network, steps):
    return network(steps, network.initial_state(B))


def _crelu_head(head, inputs):
    hidden = inputs @ head._hidden.kernel + head._hidden.bias
    hidden = tf.concat([tf.nn.relu(hidden), tf.nn.relu(-hidden)], axis=-1)
    return hidden @ head._outputs.kernel + head._outputs.bias


class ReactorNetworkTest(parameterized.TestCase):
    def test_table_3_has_expected_parameter_count(self):
        spec = types.EnvironmentSpec(
            specs.BoundedArray([84, 84, 1], np.uint8, 0, 255), specs.DiscreteArray(18)
        )
        config = trunk_config.TrunkConfig(torso="reactor", core="lstm", core_size=128)
        network = _network(config, spec, bins=51)
        blank = tf.nest.map_structure(tf.constant, observations.padding_steps(spec, (1, 1)))
        output, _ = network(blank, network.initial_state(1))
        self.assertEqual(output.policy.shape, [1, 1, 18])
        self.assertEqual(output.critic.shape, [1, 1, 18, 51])
        convolutions = (64 * 16 + 16) + (16 * 32 * 32 + 32) + (9 * 64 * 32 + 32)
        linear = 7 * 7 * 64 * 128 + 128
        lstm = (256 + 128 + 1) * 4 * 128
        hidden = 128 * 32 + 32  # For each of policy, value and advantages.
        outputs = 65 * 18 + 65 * 51 + 65 * 18 * 51
        self.assertEqual(
            sum(int(np.prod(v.shape)) for v in network.trainable_variables),
            convolutions + linear + 2 * lstm + 3 * hidden + outputs,
        )

    @parameterized.parameters((1, 0.01), (N, 0.0), (N, 0.5))
    def test_outputs_equal_reference(self, bins, share):
        # Actions and rewards are no inputs.
        config = trunk_config.TrunkConfig(mlp_units=(6,), normalise_vectors=False)
        network, steps = _network(config, bins=bins, uniform_share=share), _steps()
        _call(network, steps)
        generator = np.random.default_rng(1)
        for variable in network.trainable_variables:
            variable.assign_add(generator.normal(size=variable.shape).astype(np.float32))
        with_inputs = _steps(reward=tf.ones([R, B]), previous_action=tf.ones([R, B], tf.int32))
        output, state = _call(network, with_inputs)
        self.assertEqual(state, ((), ()))
        features = tf.reshape(network._encoder(tf.reshape(steps.observation, [-1, 2])), [R, B, 6])
        policy = (1 - share) * tf.nn.softmax(_crelu_head(network._policy_head, features))
        np.testing.assert_allclose(output.policy, policy + share / A, rtol=1e-4, atol=1e-6)
        value = _crelu_head(network._critic_head._value, features)[..., None, :]
        advantage = _crelu_head(network._critic_head._advantage, features)
        advantage = tf.reshape(advantage, [R, B, A, bins])
        expected = value + advantage - tf.reduce_mean(advantage, axis=2, keepdims=True)
        np.testing.assert_allclose(output.critic, expected, rtol=1e-3, atol=1e-3)

    @parameterized.parameters("lstm", "none")
    def test_policy_gradient_stops_before_encoder(self, core):
        network = _network(trunk_config.TrunkConfig(mlp_units=(6,), core=core, core_size=5))
        steps = _steps()
        _call(network, steps)
        variables = network.trainable_variables
        with tf.GradientTape(persistent=True) as tape:
            output, _ = _call(network, steps)
            sums = [tf.reduce_sum(tf.square(part)) for part in output]

        def names(*parts):
            return {v.ref() for part in parts if part for v in part.trainable_variables}

        trained = [
            {v.ref() for v in variables if tape.gradient(part, v) is not None} for part in sums
        ]
        policy = names(network._policy_core, network._policy_head)
        critic = names(network._critic_core, network._critic_head, network._encoder)
        self.assertNotEmpty(names(network._encoder))
        self.assertEqual(trained, [policy, critic])

    @parameterized.parameters(1, N)
    def test_fresh_critic_gives_all_actions_similar_values(self, bins):
        # Otherwise the initial weights of the critic would determine the policy.
        critic = _call(_network(bins=bins), _steps())[0].critic.numpy()
        self.assertGreater(np.ptp(critic, axis=(0, 1)).max(), 0.3)  # States differ.
        self.assertLess(np.ptp(critic, axis=2).max(), 0.05)


if __name__ == "__main__":
    absltest.main()
