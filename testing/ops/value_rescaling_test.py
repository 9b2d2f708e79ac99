import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import value_rescaling
from testing import numpy_reference
from testing.ops import rlax_oracle

EPSILON = 1e-3
MAGNITUDES = np.logspace(-4, 6, 201).astype(np.float32)
VALUES = np.concatenate([-MAGNITUDES[::-1], [np.float32(0.0)], MAGNITUDES])


def _gradient(function, x, epsilon=EPSILON):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x, epsilon)
    return tape.gradient(y, x).numpy()


class ValueRescalingTest(parameterized.TestCase):
    @parameterized.parameters(1e-3, 1e-2, 1.0)
    def test_equals_the_papers_formulas(self, epsilon):
        # Relative precision only: a difference of nearly equal numbers would have none at 1e-4.
        for name in ("rescale", "unrescale"):
            actual = getattr(value_rescaling, name)(VALUES, epsilon)
            self.assertEqual(actual.dtype, tf.float32)
            expected = getattr(numpy_reference, name)(VALUES, epsilon)
            np.testing.assert_allclose(actual, expected, rtol=1e-6)

    def test_equals_rlax_as_far_as_that_is_precise(self):
        np.testing.assert_allclose(
            value_rescaling.rescale(VALUES, EPSILON),
            rlax_oracle.rescale(VALUES),
            rtol=1e-6,
            atol=1e-6,
        )
        # rlax subtracts 500 from a number that is close to it when values are small.
        y = VALUES[np.abs(VALUES) < 2000]
        np.testing.assert_allclose(
            value_rescaling.unrescale(y, EPSILON), rlax_oracle.unrescale(y), rtol=1e-3, atol=1e-3
        )

    @parameterized.parameters((0.0, 0.0), (3.0, 1.003), (8.0, 2.008), (-15.0, -3.015))
    def test_by_hand(self, x, y):
        there = value_rescaling.rescale(tf.constant(x), EPSILON)
        np.testing.assert_allclose(there, y, rtol=1e-6)
        back = value_rescaling.unrescale(tf.constant(y), EPSILON)
        np.testing.assert_allclose(back, x, rtol=1e-6)

    @parameterized.parameters(0.0, 1e-3, 1e-2, 1.0)
    def test_there_and_back(self, epsilon):
        y = value_rescaling.rescale(VALUES, epsilon)
        np.testing.assert_allclose(value_rescaling.unrescale(y, epsilon), VALUES, rtol=1e-6)
        x = value_rescaling.unrescale(VALUES, epsilon)
        np.testing.assert_allclose(value_rescaling.rescale(x, epsilon), VALUES, rtol=1e-6)

    def test_there_and_back_from_the_smallest_to_the_largest_values(self):
        values = np.array([1e-37, 1e-20, 1e-8, 1e8, 1e20, 1e37], np.float32)
        there = value_rescaling.rescale(values, EPSILON)
        np.testing.assert_allclose(value_rescaling.unrescale(there, EPSILON), values, rtol=1e-6)

    def test_gradients_are_finite_and_those_of_the_formulas(self):
        # h'(x) = 1 / (2 sqrt(|x| + 1)) + epsilon, at 0 too, and the inverse's is 1 / h'(h^-1(y)).
        def slope(x):
            return 1 / (2 * np.sqrt(np.abs(x) + 1)) + EPSILON

        gradient = _gradient(value_rescaling.rescale, VALUES)
        np.testing.assert_allclose(gradient, slope(VALUES.astype(float)), rtol=1e-5)
        gradient = _gradient(value_rescaling.unrescale, VALUES)
        x = numpy_reference.unrescale(VALUES, EPSILON)
        np.testing.assert_allclose(gradient, 1 / slope(x), rtol=1e-5)

    def test_xla_agrees_with_eager(self):
        for function in (value_rescaling.rescale, value_rescaling.unrescale):
            compiled = tf.function(function, jit_compile=True)
            np.testing.assert_allclose(
                compiled(VALUES, EPSILON), function(VALUES, EPSILON), rtol=1e-5
            )


if __name__ == "__main__":
    absltest.main()
