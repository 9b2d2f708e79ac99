"""Tests state-value critics with and without PopArt."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.agents import state_values
from laser_tf.networks import torsos, trunk_config
from laser_tf.training import learner_config, optimizers

T, B, F, K = 4, 6, 5, 3
TASKS = tf.constant([0, 2, 2, 0, 2, 0])  # Task 1 is absent.
ALL = tf.ones([T, B], tf.bool)


def _features(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(0).normal(size=[*shape, F]), tf.float32)


def _made(popart: bool, step: float = 0.5) -> tf.Module:
    """Returns a critic with its weights created."""
    critic = state_values.PopArtStateValues(K, step) if popart else state_values.StateValues()
    critic(_features(B), TASKS)
    return critic


class BothTest(parameterized.TestCase):
    @parameterized.product(popart=(False, True), shape=((T, B), (B,)))
    def test_bfloat16_features_give_float32_values(self, popart, shape):
        values = _made(popart)(tf.cast(_features(*shape), tf.bfloat16), TASKS)
        self.assertEqual((values.shape, values.dtype), ([*shape], tf.float32))

    @parameterized.parameters(False, True)
    def test_fresh_critic_keeps_values_and_targets(self, popart):
        # Initial normalisation is the identity, and masked targets do not change it.
        critic, features = _made(popart), _features(T, B)
        values, targets = critic(features, TASKS), tf.random.stateless_normal([T, B], [0, 1])
        value_targets = critic.value_loss_inputs(
            features, values, targets, tf.zeros_like(ALL), TASKS
        )
        np.testing.assert_array_equal(value_targets.values, values)
        np.testing.assert_array_equal(value_targets.targets, targets)
        np.testing.assert_array_equal(value_targets.scale * tf.ones([B]), np.ones(B))
        # Without PopArt all tasks share the values. Moments are not trainable.
        others = critic(features, tf.zeros_like(TASKS))
        self.assertEqual(np.array_equal(values, others), not popart)
        self.assertLen(critic.trainable_variables, 2)
        self.assertLen(critic.variables, 4 if popart else 2)


class RarelySeenTest(absltest.TestCase):
    def test_values_of_rare_states_do_not_overshoot(self):
        # As in Acrobot before the first success: returns are -100, high speeds are rare.
        config = trunk_config.TrunkConfig()
        tf.keras.utils.set_random_seed(1)
        mlp = torsos.MLP(config.mlp_units, config.mlp_activation, "float32")
        critic = state_values.PopArtStateValues(1, step=0.01)
        vectors = tf.random.stateless_normal([40, 8, 6], [0, 1])
        tasks, everywhere = tf.zeros([8], tf.int32), tf.ones([40, 8], tf.bool)
        critic(mlp(vectors), tasks)
        weights = (*mlp.trainable_variables, *critic.trainable_variables)
        optimizer = optimizers.RMSProp(learner_config.LearnerConfig(rmsprop_epsilon=1e-5), weights)

        @tf.function
        def update() -> None:
            with tf.GradientTape() as tape:
                features = mlp(vectors)
                targets = tf.fill([40, 8], -100.0)
                values = critic(features, tasks)
                value_targets = critic.value_loss_inputs(
                    features, values, targets, everywhere, tasks
                )
                loss = 0.5 * tf.reduce_sum(tf.square(value_targets.targets - value_targets.values))
            gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, weights), 40.0)
            optimizer.apply(gradients, tf.constant(1e-3))

        for _ in range(200):
            update()
        self.assertBetween(np.mean(critic(mlp(vectors), tasks)), -105, -90)
        # ReLU features would give -550 at six times the distance.
        self.assertGreater(np.min(critic(mlp(6 * vectors), tasks)), -170)


class PopArtTest(parameterized.TestCase):
    def test_each_entry_has_value_and_gradient_of_its_task(self):
        critic, features = _made(True), _features(T, B)
        critic._mean.assign([3.0, 0.0, -2.0])
        critic._variance.assign([4.0, 1.0, 0.25])
        with tf.GradientTape() as tape:
            values = critic(features, TASKS)
            loss = tf.reduce_sum(tf.square(values - 3.0))
        kernel, bias = critic._layer.kernel.numpy(), critic._layer.bias.numpy()
        for t, b in np.ndindex(T, B):
            task = int(TASKS[b])
            normalised = features[t, b].numpy() @ kernel[:, task] + bias[task]
            expected = {0: 2 * normalised + 3, 2: 0.5 * normalised - 2}[task]
            np.testing.assert_allclose(values[t, b], expected, rtol=1e-5, atol=1e-5)
        for gradient in tape.gradient(loss, [critic._layer.kernel, critic._layer.bias]):
            present = np.any(gradient.numpy().reshape(-1, K) != 0.0, axis=0)
            self.assertEqual(list(present), [True, False, True])

    @parameterized.parameters(False, True)
    def test_update_keeps_values_and_learns_at_unit_scale(self, jit_compile):
        # As in an agent, one function updates statistics and last layer and computes gradients.
        critic, features = _made(True), _features(T, B)
        targets = 1e4 * tf.random.stateless_normal([T, B], [0, 2]) + 3e4

        @tf.function(jit_compile=jit_compile)
        def update():
            with tf.GradientTape() as tape:
                before = critic(features, TASKS)
                value_targets = critic.value_loss_inputs(features, before, targets, ALL, TASKS)
                errors = value_targets.values - value_targets.targets
                loss = 0.5 * tf.reduce_sum(tf.square(errors))
            after = critic(features, TASKS)
            return (
                before,
                after,
                errors,
                value_targets.scale,
                tape.gradient(loss, critic._layer.kernel),
            )

        before, after, errors, scale, gradient = update()
        np.testing.assert_allclose(after, before, atol=1e-6 * 3e4)
        np.testing.assert_allclose(
            critic._mean[0], tf.reduce_mean(targets, 0).numpy()[[0, 3, 5]].mean() / 2, rtol=1e-5
        )
        np.testing.assert_array_equal([critic._mean[1], critic._variance[1]], [0.0, 1.0])
        np.testing.assert_allclose(scale, np.sqrt(critic._variance.numpy())[TASKS], rtol=1e-5)
        # The gradient is that of the updated layer.
        expected = np.zeros([F, K])
        for t, b in np.ndindex(T, B):
            expected[:, int(TASKS[b])] += errors[t, b].numpy() * features[t, b].numpy()
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5)
        self.assertLess(np.abs(errors).max(), 10.0)


if __name__ == "__main__":
    absltest.main()
