"""Tests of Retrace."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import retrace
from testing import numpy_reference

T, B = 8, 5
MASKED = ("rewards", "discounts", "q_taken", "traces")


def _inputs(seed=0):
    """Returns inputs with some discounts of 0, and NaN between episodes except in values."""
    rng = np.random.default_rng(seed)
    is_transition = rng.uniform(size=[T, B]) > 0.2
    is_transition[:, 0], is_transition[-1, 1], is_transition[0, 2] = True, False, False
    inputs = {
        "rewards": rng.normal(size=[T, B]),
        "discounts": 0.9 * (rng.uniform(size=[T, B]) > 0.1),
        "q_taken": rng.normal(size=[T, B]),
        "values": rng.normal(size=[T + 1, B]),
        "traces": rng.uniform(0, 1.2, [T, B]),
    }
    for name in MASKED:
        inputs[name] = np.where(is_transition, inputs[name], np.nan)
    inputs = {name: tf.constant(value, tf.float32) for name, value in inputs.items()}
    return inputs | {"is_transition": tf.constant(is_transition)}


class RetraceTest(parameterized.TestCase):
    def test_targets_match_the_double_sum(self):
        inputs = _inputs()
        expected = numpy_reference.retrace(**{name: x.numpy() for name, x in inputs.items()})
        actual = retrace.retrace(**inputs).numpy()
        is_transition = inputs["is_transition"].numpy()
        np.testing.assert_allclose(actual[is_transition], expected[is_transition], rtol=1e-5)
        self.assertTrue(np.isfinite(actual).all())

    def test_zero_traces_give_one_step_targets(self):
        inputs = _inputs()
        inputs["traces"] = tf.zeros([T, B])
        is_transition = inputs["is_transition"].numpy()
        expected = inputs["rewards"] + inputs["discounts"] * inputs["values"][1:]
        actual = retrace.retrace(**inputs).numpy()
        np.testing.assert_allclose(actual[is_transition], expected[is_transition], rtol=1e-6)

    def test_unit_traces_with_equal_q_and_v_give_returns(self):
        # The corrections by Q and V cancel. Discounted rewards and the bootstrap value remain.
        rewards = tf.reshape(tf.range(3, dtype=tf.float32), [3, 1])
        inputs = {"rewards": rewards, "discounts": tf.fill([3, 1], 0.5)}
        inputs |= {"q_taken": tf.zeros([3, 1]), "values": tf.constant([[0.0], [0.0], [0.0], [8.0]])}
        inputs |= {"traces": tf.ones([3, 1]), "is_transition": tf.ones([3, 1], tf.bool)}
        np.testing.assert_allclose(
            retrace.retrace(**inputs)[:, 0], [0 + 0.5 + 0.5 + 1.0, 1 + 1 + 2.0, 2 + 4.0]
        )

    @parameterized.parameters("rewards", "discounts", "q_taken", "values", "traces")
    def test_targets_have_no_gradient(self, name):
        inputs = _inputs()
        inputs["is_transition"] = tf.ones([T, B], tf.bool)
        inputs = {
            name: x if x.dtype == tf.bool else tf.where(tf.math.is_nan(x), 0.5, x)
            for name, x in inputs.items()
        }
        with tf.GradientTape() as tape:
            tape.watch(inputs[name])
            total = tf.reduce_sum(retrace.retrace(**inputs))
        self.assertIsNone(tape.gradient(total, inputs[name]))


if __name__ == "__main__":
    absltest.main()
