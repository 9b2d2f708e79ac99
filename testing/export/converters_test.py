"""Policies in TFLite; testing/extras/onnx_extra.py tests ONNX, whose packages are optional."""

import sys
from unittest import mock

import pytest
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.export import converters
from testing import messages
from testing.export import format_case


class TFLiteTest(format_case.FormatCase):
    model_format = "tflite"

    def load(self, path):
        greedy = tf.lite.Interpreter(str(path)).get_signature_runner()
        return lambda inputs: greedy(**inputs)

    @parameterized.parameters("minatar", "continuous")
    def test_actions_and_states_are_the_agents(self, kind):
        self.check_actions_and_states(kind)

    @parameterized.parameters("vectors", "deep", "reactor")
    @pytest.mark.long
    def test_actions_and_states_of_others_are_the_agents(self, kind):
        self.check_actions_and_states(kind)

    def test_missing_operation_raises(self):
        self.check_missing_operation()


class ErrorTest(absltest.TestCase):
    def test_missing_package_names_its_installation(self):
        with mock.patch.dict(sys.modules, {"tf2onnx": None}):
            with messages.raises(errors.MissingPackageError, "tf2onnx", "make onnx", "pip install"):
                converters.import_tf2onnx()


if __name__ == "__main__":
    absltest.main()
