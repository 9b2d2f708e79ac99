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
TARGETS = [(name, name) for name, case in cases.CASES.items() if not case.receiver]
SUMS = [(name, name) for name, case in cases.CASES.items() if case.is_sum]


def _outputs(name, inputs):
    """Returns the outputs for the middle setting of a case."""
    case = cases.CASES[name]
    return cases.outputs_and_gradients(case, inputs, case.settings[len(case.settings) // 2])[0]


class PropertiesTest(parameterized.TestCase):
    @parameterized.named_parameters(*(s for s in SETTINGS if cases.CASES[s[1]].reference))
    def test_outputs_and_gradients_match_the_reference(self, name, setting):
        case = cases.CASES[name]
        for seed in (0, 1):
            inputs = case.inputs(seed)
            outputs, gradients = cases.outputs_and_gradients(case, inputs, setting)
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

    @parameterized.named_parameters(*SETTINGS)
    def test_only_the_receiver_gets_a_gradient(self, name, setting):
        case = cases.CASES[name]
        _, gradients = cases.outputs_and_gradients(case, case.inputs(0), setting)
        receivers = [key for key, gradient in gradients.items() if gradient is not None]
        self.assertEqual(receivers, [case.receiver] if case.receiver else [])

    @parameterized.named_parameters(*((name, name) for name in cases.CASES))
    def test_xla_agrees_with_eager(self, name):
        case = cases.CASES[name]
        inputs = cases.poisoned(case, case.inputs(0), np.nan)
        setting = case.settings[len(case.settings) // 2]
        compiled = tf.function(lambda x: case.op(**x, **setting), jit_compile=True)
        actual = tf.nest.flatten(compiled(inputs))
        for one, other in zip(actual, _outputs(name, inputs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)

    @parameterized.named_parameters(*TARGETS)
    def test_targets_do_not_depend_on_earlier_steps(self, name):
        inputs = cases.CASES[name].inputs(0)
        later = {key: x if key == "support" else x[2:] for key, x in inputs.items()}
        for one, other in zip(_outputs(name, later), _outputs(name, inputs), strict=True):
            np.testing.assert_allclose(one, other[2:], rtol=1e-5, atol=1e-5)

    @parameterized.named_parameters(*TARGETS)
    def test_targets_do_not_depend_on_other_batch_entries(self, name):
        inputs = cases.CASES[name].inputs(0)
        some = {key: x if key == "support" else x[:, [5, 2]] for key, x in inputs.items()}
        for one, other in zip(_outputs(name, some), _outputs(name, inputs), strict=True):
            np.testing.assert_allclose(one, other.numpy()[:, [5, 2]], rtol=1e-5, atol=1e-5)

    @parameterized.named_parameters(*SUMS)
    def test_losses_are_sums_over_time_and_batch(self, name):
        # The papers' learning rates and entropy costs assume sums.
        inputs = cases.CASES[name].inputs(0)
        for axis in (0, 1):
            doubled = {key: np.concatenate([x, x], axis) for key, x in inputs.items()}
            np.testing.assert_allclose(
                _outputs(name, doubled)[0], 2 * _outputs(name, inputs)[0], rtol=1e-5
            )

    @parameterized.named_parameters(*SUMS)
    def test_float_mask_equals_bool_mask(self, name):
        inputs = cases.CASES[name].inputs(0)
        floats = {key: tf.constant(x) for key, x in inputs.items()}
        floats["mask"] = tf.cast(floats["mask"], tf.float32)
        np.testing.assert_array_equal(cases.CASES[name].op(**floats), _outputs(name, inputs)[0])

    @parameterized.parameters("policy_gradient_loss", "entropy_loss")
    def test_nearly_deterministic_policies_have_finite_gradients(self, name):
        inputs = cases.CASES[name].inputs(0)
        inputs["logits"] *= 1e4
        outputs, gradients = cases.outputs_and_gradients(cases.CASES[name], inputs, {})
        self.assertTrue(np.isfinite(outputs[0]))
        self.assertTrue(np.isfinite(gradients["logits"]).all())


if __name__ == "__main__":
    absltest.main()
