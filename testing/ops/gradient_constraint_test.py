import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import gradient_constraint
from testing import numpy_reference

N, S = 40, 5


class ConstrainTest(parameterized.TestCase):
    @parameterized.parameters(0.0, 0.5, 2.0)
    def test_closed_form_matches_the_projection(self, delta):
        g, k = np.random.default_rng(0).normal(size=[2, N, S])
        k[0] = 0.0  # constrains nothing
        z = gradient_constraint.constrain(tf.constant(g), tf.constant(k), delta).numpy()
        for n in range(N):
            expected = numpy_reference.constrain(g[n], k[n], delta)
            np.testing.assert_allclose(z[n], expected, rtol=1e-9, atol=1e-12)
        inside = (g * k).sum(-1) <= delta
        self.assertBetween(inside.mean(), 0.1, 0.9)  # both cases occur
        np.testing.assert_array_equal(z[inside], g[inside])
        np.testing.assert_allclose((z * k).sum(-1)[~inside], delta, atol=1e-9)

    def test_loss_gradient_is_minus_the_direction(self):
        statistics, direction = tf.Variable([[0.5, 1.0]]), tf.Variable([[2.0, -3.0]])
        with tf.GradientTape() as tape:
            loss = gradient_constraint.ascent_loss(statistics, direction)
        gradients = tape.gradient(loss, [statistics, direction])
        np.testing.assert_array_equal(gradients[0], -direction.numpy())
        self.assertIsNone(gradients[1])


if __name__ == "__main__":
    absltest.main()
