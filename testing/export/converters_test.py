"""Policies in TFLite; testing/extras/onnx_extra.py tests ONNX, whose packages are optional."""

import pytest
import tensorflow as tf
from absl.testing import absltest, parameterized

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


if __name__ == "__main__":
    absltest.main()
