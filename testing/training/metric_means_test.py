"""Means of metrics over updates."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf import array_function
from laser_tf.training import metric_means


class MetricMeansTest(absltest.TestCase):
    def test_means_are_those_of_known_values_since_the_last_call(self):
        means = metric_means.MetricMeans()

        def add(values: tf.Tensor) -> tuple:
            means.add({"loss": values[0], "kl": values[1], "clipped": values[2] > 0})
            return ()

        update = array_function.ArrayFunction(add)
        self.assertEqual(means.read(), {})
        for values in ((1, np.nan, 1), (3, 5, 0), (8, np.nan, 0), (4, 7, 0)):
            update(np.float32(values))
        self.assertEqual(means.read(), {"loss": 4.0, "kl": 6.0, "clipped": 0.25})
        self.assertEqual(means.read(), {})
        update(np.float32([2, np.nan, 1]))
        np.testing.assert_equal(means.read(), {"loss": 2.0, "kl": np.nan, "clipped": 1.0})

    def test_infinite_values_are_not_hidden(self):
        means = metric_means.MetricMeans()
        tf.function(lambda: means.add({"loss": tf.constant(np.inf)}), autograph=False)()
        self.assertEqual(means.read(), {"loss": np.inf})


if __name__ == "__main__":
    absltest.main()
