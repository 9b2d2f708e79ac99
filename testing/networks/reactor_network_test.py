"""Tests Reactor's network: table 3, gradients, uniform share and core states."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.networks import reactor_network, trunk_config
from testing import messages

R, B, A, N = 5, 3, 4, 7
SPEC = types.EnvironmentSpec(specs.Array([2], np.float32), specs.DiscreteArray(A))
CONFIG = trunk_config.TrunkConfig(mlp_units=(6,), core="lstm", core_size=5, normalise_vectors=False)


def _steps(rows=R, seed=0, **fields):
    """Returns steps in the middle of episodes, [rows, B, ...]."""
    blank = tf.nest.map_structure(tf.constant, observations.padding_steps(SPEC, (rows, B)))
    observation = np.random.default_rng(seed).normal(size=[rows, B, 2]).astype(np.float32)
    middle = {"observation": tf.constant(observation), "is_first": tf.zeros([rows, B], tf.bool)}
    return blank._replace(**(middle | fields))


def _network(config=CONFIG, spec=SPEC, bins=N, **settings):
    tf.keras.utils.set_random_seed(1)
    return reactor_network.ReactorNetwork(config, spec, "float32", bins=bins, **settings)


def _called(network, steps):
    return network(steps, network.initial_state(B))


def _names(variables):
    return {variable.ref() for variable in variables}


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

    @parameterized.parameters("lstm", "none")
    def test_policy_gradient_stops_before_encoder(self, core):
        network = _network(trunk_config.TrunkConfig(mlp_units=(6,), core=core, core_size=5))
        steps = _steps()
        _called(network, steps)
        variables = network.trainable_variables
        with tf.GradientTape(persistent=True) as tape:
            output, _ = _called(network, steps)
            of_policy = tf.reduce_sum(tf.square(output.policy))
            of_critic = tf.reduce_sum(tf.square(output.critic))
        learns_from = {}
        for name, loss in (("policy", of_policy), ("critic", of_critic)):
            gradients = zip(variables, tape.gradient(loss, variables), strict=True)
            learns_from[name] = _names(v for v, g in gradients if g is not None)
        cores = (network._policy_core, network._critic_core)
        own = [_names(part.trainable_variables) if part else set() for part in cores]
        encoder = _names(network._encoder.trainable_variables)
        self.assertNotEmpty(encoder)
        policy_head = _names(network._policy_head.trainable_variables)
        critic_head = _names(network._critic_head.trainable_variables)
        self.assertEqual(learns_from["policy"], own[0] | policy_head)
        self.assertEqual(learns_from["critic"], own[1] | critic_head | encoder)

    @parameterized.parameters(0.0, 0.01, 0.5)
    def test_policy_contains_uniform_share(self, share):
        network = _network(uniform_share=share)
        output, _ = _called(network, _steps())
        np.testing.assert_allclose(tf.reduce_sum(output.policy, -1), np.ones([R, B]), rtol=1e-5)
        (bias,) = [v for v in network._policy_head.trainable_variables if v.shape == [A]]
        bias.assign([0.0, 1000.0, 0.0, 0.0])
        output, _ = _called(network, _steps())
        least = share / A
        expected = np.broadcast_to([least, 1 - share + least, least, least], [R, B, A])
        np.testing.assert_allclose(output.policy, expected, rtol=1e-5, atol=1e-7)

    def test_constant_advantage_keeps_logits_of_each_bin(self):
        network = _network()
        output, _ = _called(network, _steps())
        self.assertGreater(np.ptp(output.critic.numpy(), axis=2).min(), 0.0)  # Actions differ.
        advantage = network._critic_head._advantage._outputs
        of_all_actions = tf.tile(tf.range(N, dtype=tf.float32), [A])  # A constant for all actions.
        advantage.bias.assign(of_all_actions)
        np.testing.assert_allclose(
            _called(network, _steps())[0].critic, output.critic, rtol=1e-4, atol=1e-5
        )
        network._critic_head._value._outputs.bias.assign(tf.range(N, dtype=tf.float32))
        np.testing.assert_allclose(
            _called(network, _steps())[0].critic,
            output.critic + np.arange(N),
            rtol=1e-4,
            atol=1e-5,
        )

    def test_advantage_changes_own_bin_only(self):
        network = _network()
        before = _called(network, _steps())[0].critic
        raised = np.zeros([A, N], np.float32)
        raised[2, 5] = 4.0
        network._critic_head._advantage._outputs.bias.assign(raised.reshape(-1))
        after = _called(network, _steps())[0].critic
        expected = np.zeros([A, N])
        expected[:, 5] = -1.0
        expected[2, 5] = 3.0
        np.testing.assert_allclose(
            after - before, np.broadcast_to(expected, before.shape), rtol=1e-4, atol=1e-5
        )

    @parameterized.parameters(1, N)
    def test_fresh_critic_gives_all_actions_similar_values(self, bins):
        # Otherwise the initial weights of the critic would determine the policy.
        critic = _called(_network(bins=bins), _steps())[0].critic.numpy()
        self.assertGreater(np.ptp(critic, axis=(0, 1)).max(), 0.3)  # States differ.
        self.assertLess(np.ptp(critic, axis=2).max(), 0.05)

    def test_single_bin_gives_q_values(self):
        network = _network(bins=1)
        self.assertEqual(_called(network, _steps())[0].critic.shape, [R, B, A, 1])

    def test_single_steps_equal_unroll(self):
        network = _network()
        is_first = tf.constant(np.arange(R)[:, None] == [9, 0, 3])
        steps = _steps(is_first=is_first)
        unrolled, last = _called(network, steps)
        state = network.initial_state(B)
        for row in range(R):
            step = tf.nest.map_structure(lambda leaf, row=row: leaf[row : row + 1], steps)
            output, state = network(step, state)
            for one, of_all in zip(output, unrolled, strict=True):
                np.testing.assert_allclose(one[0], of_all[row], rtol=1e-4, atol=1e-5)
        tf.nest.map_structure(
            lambda one, of_all: np.testing.assert_allclose(one, of_all, rtol=1e-4, atol=1e-5),
            state,
            last,
        )

    def test_core_state_affects_own_output_only(self):
        network = _network()
        before, _ = _called(network, _steps(rows=1))
        state = network.initial_state(B)
        for part, name in enumerate(state._fields):
            other = tf.nest.map_structure(lambda leaf: leaf + 1.0, state[part])
            output, _ = network(_steps(rows=1), state._replace(**{name: other}))
            for index in range(2):
                changed = np.abs(output[index] - before[index]).max() > 1e-4
                self.assertEqual(changed, index == part)

    def test_rewards_and_actions_keep_outputs(self):
        network = _network()
        before, _ = _called(network, _steps())
        told = _steps(reward=tf.ones([R, B]), previous_action=tf.ones([R, B], tf.int32))
        for one, other in zip(before, _called(network, told)[0], strict=True):
            np.testing.assert_array_equal(one, other)

    def test_core_that_requires_actions_raises(self):
        config = trunk_config.TrunkConfig(core="preco_lstm")
        with messages.raises(ValueError, "core", "preco_lstm"):
            _network(config)

    def test_compiled_gradient_is_finite(self):
        network = _network()
        steps = _steps()
        _called(network, steps)

        @tf.function(jit_compile=True)
        def gradients():
            with tf.GradientTape() as tape:
                output, _ = _called(network, steps)
                loss = tf.reduce_sum(output.critic**2) + tf.reduce_sum(output.policy**2)
            return tape.gradient(loss, network.trainable_variables)

        self.assertTrue(all(np.isfinite(gradient).all() for gradient in gradients()))


if __name__ == "__main__":
    absltest.main()
