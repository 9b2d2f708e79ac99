"""The heads by themselves, and a policy and value together with PopArt, which moves the value."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import heads
from laser_tf.ops import popart

R, B, F, A, K = 4, 6, 5, 2, 3
TASKS = tf.constant([0, 2, 2, 0, 2, 0])  # task 1 is absent


def _features(*shape):
    return tf.constant(np.random.default_rng(0).normal(size=[*shape, F]), tf.float32)


def _call(head, features, tasks):
    return head.logits(features), head.normalised_values(features, tasks)


class PolicyValueHeadTest(parameterized.TestCase):
    @parameterized.parameters(((R, B),), ((B,),))
    def test_shapes_and_float32(self, shape):
        head = heads.PolicyValueHead(A, K)
        logits, values = _call(head, tf.cast(_features(*shape), tf.bfloat16), TASKS)
        self.assertEqual((logits.shape, values.shape), ([*shape, A], [*shape]))
        self.assertEqual((logits.dtype, values.dtype), (tf.float32, tf.float32))

    def test_each_column_gets_the_value_of_its_task(self):
        head, features = heads.PolicyValueHead(A, K), _features(R, B)
        _, values = _call(head, features, TASKS)
        kernel, bias = (variable.numpy() for variable in head.value_layer)
        for r, b in np.ndindex(R, B):
            task = int(TASKS[b])
            expected = features[r, b].numpy() @ kernel[:, task] + bias[task]
            np.testing.assert_allclose(values[r, b], expected, rtol=1e-5, atol=1e-6)

    def test_the_policy_does_not_depend_on_the_task(self):
        head, features = heads.PolicyValueHead(A, K), _features(R, B)
        np.testing.assert_array_equal(
            _call(head, features, TASKS)[0], _call(head, features, tf.zeros_like(TASKS))[0]
        )

    def test_moments_start_as_the_identity_and_are_saved_but_not_trained(self):
        head = heads.PolicyValueHead(A, K)
        _call(head, _features(B), TASKS)
        self.assertEqual([v.shape for v in head.trainable_variables].count([K]), 1)  # the bias
        self.assertLen(head.trainable_variables, 4)
        self.assertLen(head.variables, 6)
        values = tf.random.stateless_normal([R, B], [0, 1])
        statistics = popart.Statistics(*head.moments)
        np.testing.assert_array_equal(popart.normalise(statistics, values, TASKS), values)

    def test_gradient_reaches_the_value_weights_of_the_tasks_present_only(self):
        head, features = heads.PolicyValueHead(A, K), _features(R, B)
        _call(head, features, TASKS)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(head.normalised_values(features, TASKS) - 3.0))
        kernel_gradient, bias_gradient = tape.gradient(loss, head.value_layer)
        self.assertEqual(list(np.any(kernel_gradient != 0.0, axis=0)), [True, False, True])
        self.assertEqual(list(bias_gradient.numpy() != 0.0), [True, False, True])

    @parameterized.parameters(False, True)
    def test_an_update_keeps_the_values_and_then_learns_at_unit_scale(self, jit_compile):
        # As an agent does it, in one compiled scope: statistics, last layer, gradient.
        head, features = heads.PolicyValueHead(A, K), _features(R, B)
        _call(head, features, TASKS)
        targets = 1e4 * tf.random.stateless_normal([R, B], [0, 2]) + 3e4

        @tf.function(jit_compile=jit_compile)
        def update():
            with tf.GradientTape() as tape:
                old = popart.Statistics(*head.moments)
                before = popart.unnormalise(old, _call(head, features, TASKS)[1], TASKS)
                new = popart.update(old, targets, tf.ones([R, B], tf.bool), TASKS, 0.5)
                head.assign(new, popart.preserve_outputs(old, new, *head.value_layer))
                normalised = head.normalised_values(features, TASKS)
                after = popart.unnormalise(new, normalised, TASKS)
                errors = normalised - popart.normalise(new, targets, TASKS)
                loss = 0.5 * tf.reduce_sum(tf.square(errors))
            return before, after, errors, tape.gradient(loss, head.value_layer[0])

        before, after, errors, gradient = update()
        np.testing.assert_allclose(after, before, atol=1e-6 * 3e4)
        np.testing.assert_allclose(
            head.moments[0][0], tf.reduce_mean(targets, 0).numpy()[[0, 3, 5]].mean() / 2, rtol=1e-5
        )
        np.testing.assert_array_equal([moment[1] for moment in head.moments], [0.0, 1.0])
        # The gradient is that of the layer as it now is, not as it was at the tape's start.
        expected = np.zeros([F, K])
        for r, b in np.ndindex(R, B):
            expected[:, int(TASKS[b])] += errors[r, b].numpy() * features[r, b].numpy()
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5)
        self.assertLess(np.abs(errors).max(), 10.0)


def _by_shape(head, *shape):
    """The head's only variable of a shape."""
    (variable,) = [v for v in head.trainable_variables if v.shape == shape]
    return variable


class DuelingHeadTest(parameterized.TestCase):
    @parameterized.parameters(((R, B),), ((B,),))
    def test_shapes_and_float32(self, shape):
        head = heads.DuelingHead(A, 7)
        q = head(tf.cast(_features(*shape), tf.bfloat16))
        self.assertEqual((q.shape, q.dtype), ([*shape, A], tf.float32))
        self.assertTrue(all(v.dtype == tf.float32 for v in head.trainable_variables))

    def test_parameter_count_of_the_paper_s_streams(self):
        head = heads.DuelingHead(18)
        head(tf.zeros([1, 512]))
        count = sum(int(np.prod(v.shape)) for v in head.trainable_variables)
        self.assertEqual(count, 2 * 513 * 512 + 513 + 513 * 18)

    def test_hand_set_weights(self):
        head = heads.DuelingHead(num_actions=3, hidden_units=1)
        head(tf.zeros([1, 2]))
        # Streams cannot be told apart by the shapes of their hidden layers: one unit each.
        value_hidden, advantage_hidden = head._value_hidden, head._advantage_hidden
        value_hidden.kernel.assign([[1.0], [1.0]])
        advantage_hidden.kernel.assign([[1.0], [-1.0]])
        value_hidden.bias.assign([1.0])
        _by_shape(head, 1, 1).assign([[10.0]])
        _by_shape(head, 1, 3).assign([[1.0, 2.0, 6.0]])
        _by_shape(head, 3).assign([0.0, 0.0, 3.0])
        q = head(tf.constant([[3.0, 1.0], [1.0, 3.0], [-2.0, -1.0]]))
        # Hidden units: 5 and 2; 5 and relu(-2); relu(-2) and relu(-1). Advantages: 2, 4, 15 with
        # mean 7, and twice 0, 0, 3 with mean 1.
        np.testing.assert_allclose(
            q, [[50 - 5, 50 - 3, 50 + 8], [50 - 1, 50 - 1, 50 + 2], [-1, -1, 2]], atol=1e-5
        )

    def test_advantages_average_to_zero_so_that_the_mean_is_the_value(self):
        head = heads.DuelingHead(A, 7)
        before = head(_features(R, B))
        _by_shape(head, A).assign_add(tf.fill([A], 3.0))  # of all advantages: changes nothing
        np.testing.assert_allclose(head(_features(R, B)), before, atol=1e-5)
        _by_shape(head, 1).assign([2.0])
        np.testing.assert_allclose(head(_features(R, B)), before + 2.0, atol=1e-5)
        _by_shape(head, 7, 1).assign(tf.zeros([7, 1]))
        np.testing.assert_allclose(
            tf.reduce_mean(head(_features(R, B)), axis=-1), np.full([R, B], 2.0), atol=1e-5
        )

    def test_every_variable_receives_gradient(self):
        head = heads.DuelingHead(A, 7)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(head(_features(R, B))[..., 0]))
        for gradient in tape.gradient(loss, head.trainable_variables):
            self.assertGreater(np.abs(gradient).max(), 0.0)


if __name__ == "__main__":
    absltest.main()
