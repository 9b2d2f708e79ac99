"""The modules that a local run loads, and those that load at their first use."""

from absl.testing import absltest

from testing import commands

_PROGRAM = """
import gc, sys
import launch
from launch import session
from laser_tf.training import assembly

names = {"imageio", "jax", "matplotlib", "optuna", "pandas.core", "ray", "scipy.ndimage._filters",
         "setuptools", "tensorflow.lite.python.lite", "tensorflow_probability", "tf_agents"}
loaded = names & set(sys.modules)
assert not loaded, loaded
assert gc.isenabled()

import numpy as np, pandas, scipy.ndimage, tensorflow as tf
assert pandas.DataFrame({"a": [1.0, 3.0]})["a"].mean() == 2.0
assert scipy.ndimage.maximum(np.ones(2)) == 1.0
assert tf.lite.Optimize.DEFAULT is tf.compat.v1.lite.Optimize.DEFAULT
inputs = pandas.DataFrame({"a": [1.0, 3.0]})
assert tf.keras.Sequential([tf.keras.layers.Dense(1)]).predict(inputs, verbose=0).shape == (2, 1)
"""


class QuickImportTest(absltest.TestCase):
    def test_unused_modules_load_at_their_first_use(self):
        result = commands.run_program(_PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    absltest.main()
