import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import vtrace
from testing.ops import cases


class VtraceTest(parameterized.TestCase):
    @parameterized.named_parameters(("terminated", 0.0), ("truncated", 1.0))
    def test_only_time_limits_bootstrap_at_the_end(self, discount):
        # On policy. x_2 ends the episode and x_3 starts the next, so step 2 is not a transition.
        gamma, v, r = 0.9, [1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 5.0, np.nan, 7.0]
        output = vtrace.vtrace(
            log_rhos=tf.constant([[0.0], [0.0], [np.nan], [0.0]]),
            discounts=tf.constant([[gamma], [gamma * discount], [gamma], [gamma]]),
            rewards=tf.constant(r)[:, None],
            values=tf.constant(v)[:, None],
            trusted=tf.constant([[True], [True], [False], [True]]),
        )
        # A time limit bootstraps from V(x_2), not from the value of the next episode.
        last = r[1] + gamma * discount * v[2]
        expected = [r[0] + gamma * last, last, v[2], r[3] + gamma * v[4]]
        np.testing.assert_allclose(output.values[:, 0], expected, rtol=1e-6)
        np.testing.assert_allclose(output.advantages[1, 0], last - v[1], rtol=1e-6)

    def test_extreme_ratios_give_finite_outputs(self):
        inputs = cases.vtrace_inputs()
        inputs["trusted"][:] = True
        inputs["log_rhos"][::2], inputs["log_rhos"][1::2] = 1e4, -1e4
        output = vtrace.vtrace(**inputs)
        for tensor in output:
            self.assertTrue(np.isfinite(tensor).all())
        np.testing.assert_array_equal(output.rhos[::2], 1.0)
        np.testing.assert_array_equal(output.rhos[1::2], 0.0)


if __name__ == "__main__":
    absltest.main()
