"""Tests products of distributions against the enumeration of all joint actions."""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.distributions import factory
from testing import numpy_reference

SIZES = (2, 4, 3)
DISCRETE = types.ProductSpec([specs.DiscreteArray(size) for size in SIZES])
JOINT = list(itertools.product(*map(range, SIZES)))
BOX = specs.BoundedArray([2], np.float32, [-1, 0], [1, 4])
MIXED = types.ProductSpec([specs.DiscreteArray(3), BOX, specs.DiscreteArray(2)])


def _outputs(size: int, seed: int, batch: int = 5) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=[batch, size]), tf.float32)


def _joint_logits(outputs: tf.Tensor) -> tf.Tensor:
    """Returns log-probabilities of all joint actions, [N, 24]."""
    parts = [tf.nn.log_softmax(part) for part in tf.split(outputs, SIZES, axis=-1)]
    columns = [tf.add_n([part[:, i] for part, i in zip(parts, a, strict=True)]) for a in JOINT]
    return tf.stack(columns, axis=-1)


class DiscreteProductTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._family = factory.make(DISCRETE, "squashed", 0.5)
        self._outputs = [_outputs(sum(SIZES), seed) for seed in (0, 1)]
        self._joint = factory.make(specs.DiscreteArray(len(JOINT)), "squashed", 0.5)

    def test_values_and_gradients_are_those_of_joint_categorical(self):
        self.assertEqual(self._family.output_size, sum(SIZES))
        number = np.array([3, 23, 0, 10, 17])
        actions = tf.constant(np.array(JOINT)[number], tf.int32)
        number = tf.constant(number)

        def product(outputs, other):
            p, q = map(self._family.parameters, (outputs, other))
            return {
                "log_prob": self._family.log_prob(p, actions, ()),
                "ratio": self._family.log_importance_ratio(p, q, actions, ()),
                "entropy": self._family.entropy(p),
                "kl": self._family.kl_divergence(p, q),
            }

        def joint(outputs, other):
            p, q = map(_joint_logits, (outputs, other))
            return {
                "log_prob": self._joint.log_prob(p, number),
                "ratio": self._joint.log_importance_ratio(p, q, number),
                "entropy": self._joint.entropy(p),
                "kl": self._joint.kl_divergence(p, q),
            }

        for name in ("log_prob", "ratio", "entropy", "kl"):
            results = []
            for function in (product, joint):
                with tf.GradientTape() as tape:
                    tape.watch(self._outputs)
                    value = function(*self._outputs)[name]
                gradients = tape.gradient(value, self._outputs)
                results.append([value, *(g for g in gradients if g is not None)])
            for actual, expected in zip(*results, strict=True):
                np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5, err_msg=name)

    def test_samples_follow_joint_probabilities_and_seed(self):
        spec = types.ProductSpec([specs.DiscreteArray(3)] * 2)
        family = factory.make(spec, "squashed", 0.5)
        outputs = tf.repeat(tf.constant([[0.0, 1.0, -1.0, 0.0, 1.0, -1.0]]), 20_000, axis=0)
        parameters = family.parameters(outputs)
        sample = family.sample(parameters, tf.constant([1, 2]))
        self.assertEqual((sample.action.dtype, sample.latent), (tf.int32, ()))
        numbers = 3 * sample.action[:, 0] + sample.action[:, 1]
        shares = np.bincount(numbers, minlength=9) / 20_000
        one = numpy_reference.softmax(outputs[0, :3])
        # The tolerance is five standard deviations.
        np.testing.assert_allclose(shares, np.outer(one, one).reshape(-1), atol=0.018)
        other = family.sample(parameters, tf.constant([1, 3])).action
        self.assertFalse(np.array_equal(sample.action, other))

    def test_mode_is_the_most_probable_joint_action(self):
        parameters = self._family.parameters(self._outputs[0])
        best = tf.argmax(_joint_logits(self._outputs[0]), axis=-1)
        np.testing.assert_array_equal(self._family.mode(parameters), np.array(JOINT)[best])

    @parameterized.parameters("probabilities", "logits")
    def test_gradients_in_statistics_are_those_of_parts(self, name):
        family, statistics = factory.make_with_statistics(DISCRETE, name, 0.3)
        outputs, average = self._outputs
        action = tf.constant(JOINT[7:12])
        _, one = factory.make_with_statistics(specs.DiscreteArray(2), name, 0.3)
        p, q = map(family.parameters, (outputs, average))
        parts = [(p[:, :2], q[:, :2]), (p[:, 2:6], q[:, 2:6]), (p[:, 6:], q[:, 6:])]
        taken = tf.unstack(action, axis=1)
        for actual, expected in (
            (statistics.compute(p), [one.compute(p) for p, _ in parts]),
            (
                statistics.score(p, action, ()),
                [one.score(p, a) for (p, _), a in zip(parts, taken, strict=True)],
            ),
            (
                statistics.divergence_gradient(q, p),
                [one.divergence_gradient(q, p) for p, q in parts],
            ),
            (statistics.entropy_gradient(p), [one.entropy_gradient(p) for p, _ in parts]),
        ):
            np.testing.assert_allclose(actual, tf.concat(expected, axis=-1), rtol=1e-5)

    def test_nearly_deterministic_policies_are_finite(self):
        outputs = tf.constant([[1e4, 0.0, -1e4, 0.0, 1e4, 0.0, 1e4, 1e4, -1e4]])
        with tf.GradientTape() as tape:
            tape.watch(outputs)
            values = [
                self._family.entropy(outputs),
                self._family.kl_divergence(outputs, -outputs),
                self._family.log_prob(outputs, tf.constant([[1, 0, 2]])),
            ]
        # The third integer has two equally probable values.
        np.testing.assert_allclose(values[0], [np.log(2)], rtol=1e-6)
        np.testing.assert_allclose(values[2], [-1e4 - 2e4 - 2e4], rtol=1e-4)
        for tensor in (*values, tape.gradient(values, outputs)):
            self.assertTrue(np.isfinite(tensor).all())


class MixedProductTest(absltest.TestCase):
    def test_discrete_and_continuous_parts_are_independent(self):
        family = factory.make(MIXED, "squashed", 0.5)
        parts = [
            factory.make(part, "squashed", 0.5)
            for part in (specs.DiscreteArray(3), specs.DiscreteArray(2), BOX)
        ]
        parameters, others = (
            family.parameters(_outputs(family.output_size, seed)) for seed in (0, 1)
        )
        sample = family.sample(parameters, tf.constant([1, 2]))
        self.assertEqual((sample.action.dtype, sample.action.shape), (tf.float32, [5, 4]))
        for action in (*sample.action, *family.mode(parameters)):
            MIXED.validate(action)
        first, last = (tf.cast(sample.action[:, i], tf.int32) for i in (0, 3))
        actions = (first, last, sample.action[:, 1:3])
        split = [(p[:, :3], p[:, 3:], gaussian) for p, gaussian in (parameters, others)]
        arguments = zip(parts, *split, actions, ((), (), sample.latent), strict=True)
        log_prob, ratio, entropy, kl = 0.0, 0.0, 0.0, 0.0
        for part, p, q, action, latent in arguments:
            log_prob += part.log_prob(p, action, latent)
            ratio += part.log_importance_ratio(p, q, action, latent)
            entropy += part.entropy(p)
            kl += part.kl_divergence(p, q)
        for actual, expected in (
            (family.log_prob(parameters, sample.action, sample.latent), log_prob),
            (
                family.log_importance_ratio(parameters, others, sample.action, sample.latent),
                ratio,
            ),
            (family.entropy(parameters), entropy),
            (family.kl_divergence(parameters, others), kl),
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-5)


if __name__ == "__main__":
    absltest.main()
