"""Tests of RMSProp and Adam against TensorFlow 1, compiled, and from a checkpoint."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.training import learner_config, optimizers

START = np.array([1.0, -2.0, 3.0], np.float32)


def _gradients(count: int) -> list[tf.Tensor]:
    generator = np.random.default_rng(1)
    return [tf.constant(generator.normal(size=3), tf.float32) for _ in range(count)]


def _adam(variables, beta1=0.9, beta2=0.999, epsilon=1e-3) -> optimizers.Adam:
    config = learner_config.LearnerConfig(adam_beta1=beta1, adam_beta2=beta2, adam_epsilon=epsilon)
    return optimizers.Adam(config, variables)


class RMSPropTest(parameterized.TestCase):
    @parameterized.parameters((0.1, 0.0), (0.01, 0.0), (1e-5, 0.9))
    def test_steps_match_tensorflow_1(self, epsilon, momentum):
        config = learner_config.LearnerConfig(
            rmsprop_decay=0.9, rmsprop_momentum=momentum, rmsprop_epsilon=epsilon
        )
        ours, theirs = tf.Variable(START), tf.Variable(START)
        optimizer = optimizers.RMSProp(config, [ours])
        reference = tf.compat.v1.train.RMSPropOptimizer(
            0.05, decay=0.9, momentum=momentum, epsilon=epsilon
        )
        for gradient in _gradients(5):
            optimizer.apply([gradient], tf.constant(0.05))
            reference.apply_gradients([(gradient, theirs)])
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


class AdamTest(parameterized.TestCase):
    def test_two_steps_match_a_calculation(self):
        variable = tf.Variable(0.0)
        optimizer = _adam([variable], 0.5, 0.75, 0.1)
        # m = 0.5 * 2 = 1, v = 0.25 * 2^2 = 1; corrections sqrt(0.25) / 0.5 = 1
        optimizer.apply([tf.constant(2.0)], tf.constant(0.5))
        first = -0.5 * 1.0 / (1.0 + 0.1)
        np.testing.assert_allclose(variable, first, rtol=1e-6)
        # m = 0.5 * 1 + 0.5 * 3 = 2, v = 0.75 * 1 + 0.25 * 3^2 = 3; sqrt(0.4375) / 0.75
        optimizer.apply([tf.constant(3.0)], tf.constant(0.2))
        second = -0.2 * np.sqrt(0.4375) / 0.75 * 2.0 / (np.sqrt(3.0) + 0.1)
        np.testing.assert_allclose(variable, first + second, rtol=1e-6)

    @parameterized.parameters((0.9, 0.999, 1e-3), (0.9, 0.999, 1e-8), (0.5, 0.9, 0.1))
    def test_steps_match_tensorflow_1(self, beta1, beta2, epsilon):
        ours, theirs = tf.Variable(START), tf.Variable(START)
        optimizer = _adam([ours], beta1, beta2, epsilon)
        reference = tf.compat.v1.train.AdamOptimizer(0.05, beta1, beta2, epsilon)
        for gradient in _gradients(5):
            optimizer.apply([gradient], tf.constant(0.05))
            reference.apply_gradients([(gradient, theirs)])
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)

    @parameterized.parameters(False, True)
    def test_compiled_step_reads_the_learning_rate(self, jit_compile):
        ours, theirs = tf.Variable(START), tf.Variable(START)
        optimizer, reference = _adam([ours]), _adam([theirs])
        traces = []

        @tf.function(jit_compile=jit_compile, autograph=False)
        def step(gradient, learning_rate, is_taken):
            traces.append(gradient)
            tf.cond(is_taken, lambda: optimizer.apply([gradient], learning_rate), lambda: None)

        for index, gradient in enumerate(_gradients(6)):
            is_taken, learning_rate = index != 3, tf.constant(0.1 / (1 + index))
            step(gradient, learning_rate, tf.constant(is_taken))
            if is_taken:  # what was left out is no step of t either
                reference.apply([gradient], learning_rate)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)
        self.assertLen(traces, 1)

    def test_all_variables_exist_from_the_start(self):
        variables = [tf.Variable(START), tf.Variable(tf.ones([2, 4]))]
        optimizer = _adam(variables)
        shapes = [tuple(v.shape) for v in optimizer.variables]
        self.assertCountEqual(shapes, [(), (3,), (3,), (2, 4), (2, 4)])  # t; m and v of each
        optimizer.apply([tf.ones([3]), tf.ones([2, 4])], tf.constant(0.1))
        self.assertLen(optimizer.variables, len(shapes))

    def test_restored_optimizer_takes_equal_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "checkpoint")
            made = [tf.Variable(START), tf.Variable(START)]
            pair = [_adam([variable]) for variable in made]
            saved, fresh = (
                tf.train.Checkpoint(optimizer=optimizer, variable=variable)
                for optimizer, variable in zip(pair, made, strict=True)
            )
            for gradient in _gradients(3):
                pair[0].apply([gradient], tf.constant(0.1))
            saved.write(path)
            fresh.read(path).assert_consumed()
        np.testing.assert_array_equal(*made)
        for gradient in _gradients(2):
            for optimizer in pair:
                optimizer.apply([gradient], tf.constant(0.05))
            np.testing.assert_array_equal(*made)

    def test_mixed_precision_takes_equal_steps(self):
        layer = tf.keras.layers.Dense(2, dtype=tf.keras.mixed_precision.Policy("mixed_bfloat16"))
        layer.build([None, 3])
        plain = [tf.Variable(variable.numpy()) for variable in layer.trainable_variables]
        gradients = [tf.ones_like(variable) for variable in plain]
        for variables in (layer.trainable_variables, plain):
            _adam(variables).apply(gradients, tf.constant(0.1))
        for ours, theirs in zip(layer.trainable_variables, plain, strict=True):
            np.testing.assert_array_equal(ours.numpy(), theirs)


if __name__ == "__main__":
    absltest.main()
