"""Tests each op of `cases` against its naive reference, and the properties that all ops share."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from testing.ops import cases

SETTINGS = [
    (f"{name}_{index}", name, setting)
    for name, case in cases.CASES.items()
    for index, setting in enumerate(case.settings)
]


class PropertiesTest(parameterized.TestCase):
    @parameterized.named_parameters(*SETTINGS)
    def test_outputs_and_gradients_match_the_reference(self, name, setting):
        case = cases.CASES[name]
        for seed in (0, 1):
            inputs = case.inputs(seed)
            outputs, gradients = cases.outputs_and_gradients(case, inputs, setting)
            receivers = [key for key, gradient in gradients.items() if gradient is not None]
            self.assertEqual(receivers, [case.receiver] if case.receiver else [])
            if not case.reference:
                continue
            expected = case.reference(**inputs, **setting)
            expected = expected if isinstance(expected, tuple) else (expected,)
            actual = [*outputs, gradients[case.receiver]] if case.receiver else outputs
            for one, other in zip(actual, expected, strict=True):
                self.assertEqual(one.dtype, tf.float32)
                other = np.asarray(other)
                valid = ~np.isnan(other)
                np.testing.assert_allclose(one.numpy()[valid], other[valid], rtol=1e-4, atol=5e-5)

    @parameterized.named_parameters(*SETTINGS)
    def test_unread_entries_do_not_change_outputs(self, name, setting):
        # Masking after the arithmetic would give a correct loss, but a NaN gradient (0 * NaN).
        case = cases.CASES[name]
        inputs = case.inputs(0)
        outputs, gradients = cases.outputs_and_gradients(case, inputs, setting)
        for poison in (np.nan, np.inf, -np.inf):
            dirty = cases.poisoned(case, inputs, poison)
            actual, actual_gradients = cases.outputs_and_gradients(case, dirty, setting)
            for one, other in zip(actual, outputs, strict=True):
                np.testing.assert_array_equal(one, other)
                self.assertTrue(np.isfinite(one).all())
            if case.receiver:
                gradient = actual_gradients[case.receiver].numpy()
                np.testing.assert_array_equal(gradient, gradients[case.receiver])
                np.testing.assert_array_equal(gradient[case.unread(inputs)[case.receiver]], 0.0)

    @parameterized.named_parameters(*((name, name) for name in cases.CASES))
    def test_xla_agrees_with_eager(self, name):
        case = cases.CASES[name]
        inputs = cases.poisoned(case, case.inputs(0), np.nan)
        setting = case.settings[len(case.settings) // 2]
        compiled = tf.function(lambda x: case.op(**x, **setting), jit_compile=True)
        expected, _ = cases.outputs_and_gradients(case, inputs, setting)
        for one, other in zip(tf.nest.flatten(compiled(inputs)), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    absltest.main()
