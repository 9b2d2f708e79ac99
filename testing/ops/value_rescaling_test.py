import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import value_rescaling
from testing import numpy_reference

MAGNITUDES = np.logspace(-4, 6, 201).astype(np.float32)
VALUES = np.concatenate([-MAGNITUDES[::-1], [np.float32(0.0)], MAGNITUDES])


def _value_and_gradient(function, x, epsilon):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x, epsilon)
    return y, tape.gradient(y, x)


class ValueRescalingTest(parameterized.TestCase):
    @parameterized.parameters(1e-3, 1e-2, 1.0)
    def test_functions_and_gradients_match_the_formulas(self, epsilon):
        # A difference of nearly equal numbers would lose the relative precision of small values.
        def slope(x):  # h'(x), also at 0; the inverse has 1 / h'(h^-1(y))
            return 1 / (2 * np.sqrt(np.abs(x.astype(float)) + 1)) + epsilon

        x = numpy_reference.unrescale(VALUES, epsilon)
        for name, slopes in (("rescale", slope(VALUES)), ("unrescale", 1 / slope(x))):
            for transform in (lambda f: f, lambda f: tf.function(f, jit_compile=True)):
                function = transform(getattr(value_rescaling, name))
                actual, gradient = _value_and_gradient(function, VALUES, epsilon)
                self.assertEqual(actual.dtype, tf.float32)
                expected = getattr(numpy_reference, name)(VALUES, epsilon)
                np.testing.assert_allclose(actual, expected, rtol=2e-6)
                np.testing.assert_allclose(gradient, slopes, rtol=1e-5)

    @parameterized.parameters(0.0, 1e-3, 1e-2, 1.0)
    def test_functions_are_inverse(self, epsilon):
        extremes = np.array([1e-37, 1e-20, 1e-8, 1e8, 1e20, 1e37], np.float32)
        for values in (VALUES, extremes) if epsilon else (VALUES,):
            y = value_rescaling.rescale(values, epsilon)
            np.testing.assert_allclose(value_rescaling.unrescale(y, epsilon), values, rtol=1e-6)
        x = value_rescaling.unrescale(VALUES, epsilon)
        np.testing.assert_allclose(value_rescaling.rescale(x, epsilon), VALUES, rtol=1e-6)


if __name__ == "__main__":
    absltest.main()
