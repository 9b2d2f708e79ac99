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
    def test_functions_match_the_formulas_of_the_papers(self, epsilon):
        # A difference of nearly equal numbers would lose the relative precision of small values.
        for name in ("rescale", "unrescale"):
            actual = getattr(value_rescaling, name)(VALUES, epsilon)
            self.assertEqual(actual.dtype, tf.float32)
            expected = getattr(numpy_reference, name)(VALUES, epsilon)
            np.testing.assert_allclose(actual, expected, rtol=1e-6)

    def test_functions_match_rlax_within_its_precision(self):
        np.testing.assert_allclose(
            value_rescaling.rescale(VALUES, EPSILON),
            rlax_oracle.rescale(VALUES),
            rtol=1e-6,
            atol=1e-6,
        )
        # For small values, rlax subtracts 500 from a number close to 500.
        y = VALUES[np.abs(VALUES) < 2000]
        np.testing.assert_allclose(
            value_rescaling.unrescale(y, EPSILON), rlax_oracle.unrescale(y), rtol=1e-3, atol=1e-3
        )

    @parameterized.parameters((0.0, 0.0), (3.0, 1.003), (8.0, 2.008), (-15.0, -3.015))
    def test_functions_match_manual_calculations(self, x, y):
        rescaled = value_rescaling.rescale(tf.constant(x), EPSILON)
        np.testing.assert_allclose(rescaled, y, rtol=1e-6)
        original = value_rescaling.unrescale(tf.constant(y), EPSILON)
        np.testing.assert_allclose(original, x, rtol=1e-6)

    @parameterized.parameters(0.0, 1e-3, 1e-2, 1.0)
    def test_functions_are_inverse(self, epsilon):
        y = value_rescaling.rescale(VALUES, epsilon)
        np.testing.assert_allclose(value_rescaling.unrescale(y, epsilon), VALUES, rtol=1e-6)
        x = value_rescaling.unrescale(VALUES, epsilon)
        np.testing.assert_allclose(value_rescaling.rescale(x, epsilon), VALUES, rtol=1e-6)

    def test_extreme_values_survive_a_round_trip(self):
        values = np.array([1e-37, 1e-20, 1e-8, 1e8, 1e20, 1e37], np.float32)
        rescaled = value_rescaling.rescale(values, EPSILON)
        np.testing.assert_allclose(value_rescaling.unrescale(rescaled, EPSILON), values, rtol=1e-6)

    def test_gradients_match_the_formulas(self):
        # h'(x) = 1 / (2 sqrt(|x| + 1)) + epsilon, also at 0. The inverse has 1 / h'(h^-1(y)).
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
