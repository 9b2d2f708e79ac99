import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import categorical, masking, policy_gradient
from testing import numpy_reference
from testing.ops import rlax_oracle

T, B, A = 7, 5, 4


def _inputs(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "logits": 2.0 * rng.normal(size=[T, B, A]).astype(np.float32),
        "actions": rng.integers(A, size=[T, B]).astype(np.int32),
        "weighted_advantages": rng.normal(size=[T, B]).astype(np.float32),
        "values": rng.normal(size=[T, B]).astype(np.float32),
        "targets": rng.normal(size=[T, B]).astype(np.float32),
        "mask": rng.uniform(size=[T, B]) > 0.3,
    }


# Arguments of each loss. The first argument receives the gradient.
ARGUMENTS = {
    "policy_gradient_loss": ("logits", "actions", "weighted_advantages", "mask"),
    "baseline_loss": ("values", "targets", "mask"),
    "entropy_loss": ("logits", "mask"),
}
LOSSES = tuple((name, name) for name in ARGUMENTS)


def _loss(name, logits, actions, weighted_advantages, values, targets, mask):
    """Computes a loss as LASER does, with logits masked before log-probabilities and entropies."""
    kept = masking.keep(mask, logits)
    if name == "policy_gradient_loss":
        log_probs = categorical.log_probability(kept, actions)
        return policy_gradient.policy_gradient_loss(log_probs, weighted_advantages, mask)
    if name == "entropy_loss":
        return policy_gradient.entropy_loss(categorical.entropy(kept), mask)
    return policy_gradient.baseline_loss(values, targets, mask)


def _loss_and_gradients(name, inputs, mask_dtype=tf.bool):
    """Returns the loss and its gradients in all float arguments, by name."""
    arguments = {key: tf.constant(x) for key, x in inputs.items()}
    arguments["mask"] = tf.cast(arguments["mask"], mask_dtype)
    floats = {k: x for k, x in arguments.items() if x.dtype == tf.float32 and k != "mask"}
    with tf.GradientTape() as tape:
        tape.watch(floats)
        loss = _loss(name, **arguments)
    return loss, tape.gradient(loss, floats)


class LossesTest(parameterized.TestCase):
    @parameterized.named_parameters(*LOSSES)
    def test_loss_and_gradient_match_the_naive_loop_and_rlax(self, name):
        inputs = _inputs()
        arguments = [inputs[key] for key in ARGUMENTS[name]]
        loss, gradients = _loss_and_gradients(name, inputs)
        for oracle in (numpy_reference, rlax_oracle):
            expected_loss, expected_gradient = getattr(oracle, name)(*arguments)
            np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
            np.testing.assert_allclose(
                gradients[ARGUMENTS[name][0]], expected_gradient, rtol=1e-4, atol=1e-6
            )

    @parameterized.named_parameters(*LOSSES)
    def test_only_the_first_argument_receives_a_gradient(self, name):
        _, gradients = _loss_and_gradients(name, _inputs())
        receivers = [key for key, gradient in gradients.items() if gradient is not None]
        self.assertEqual(receivers, [ARGUMENTS[name][0]])

    @parameterized.named_parameters(*LOSSES)
    def test_masked_nan_has_neither_loss_nor_gradient(self, name):
        # Masking after the multiplication would give a correct loss, but a NaN gradient (0 * NaN).
        inputs = _inputs()
        mask = inputs["mask"]
        clean_loss, clean = _loss_and_gradients(name, inputs)
        for key in ("weighted_advantages", "targets", "values", "logits"):
            inputs[key][~mask] = np.nan
        loss, gradients = _loss_and_gradients(name, inputs)
        gradient = gradients[ARGUMENTS[name][0]].numpy()
        np.testing.assert_array_equal(loss, clean_loss)
        np.testing.assert_array_equal(gradient, clean[ARGUMENTS[name][0]])
        np.testing.assert_array_equal(gradient[~mask], 0.0)
        self.assertTrue((gradient[mask] != 0.0).all())

    @parameterized.named_parameters(*LOSSES)
    def test_float_mask_equals_bool_mask(self, name):
        np.testing.assert_array_equal(
            _loss_and_gradients(name, _inputs(), tf.float32)[0],
            _loss_and_gradients(name, _inputs(), tf.bool)[0],
        )

    @parameterized.named_parameters(*LOSSES)
    def test_losses_are_sums_over_time_and_batch(self, name):
        # The papers' learning rates and entropy costs assume sums.
        inputs = _inputs()
        once, _ = _loss_and_gradients(name, inputs)
        for axis in (0, 1):
            doubled = {key: np.concatenate([x, x], axis) for key, x in inputs.items()}
            np.testing.assert_allclose(_loss_and_gradients(name, doubled)[0], 2 * once, rtol=1e-5)

    @parameterized.named_parameters(*LOSSES)
    def test_nearly_deterministic_policies_have_finite_gradients(self, name):
        inputs = _inputs()
        inputs["logits"] *= 1e4
        loss, gradients = _loss_and_gradients(name, inputs)
        self.assertTrue(np.isfinite(loss))
        self.assertTrue(np.isfinite(gradients[ARGUMENTS[name][0]]).all())


class ArgumentsTest(parameterized.TestCase):
    """Tests of losses on log-probabilities and entropies that are NaN where masked."""

    @parameterized.parameters("policy_gradient_loss", "entropy_loss")
    def test_masked_nan_has_neither_loss_nor_gradient(self, name):
        inputs = _inputs()
        mask = inputs["mask"]
        terms = tf.constant(np.where(mask, inputs["values"], np.nan))
        weights = tf.constant(np.where(mask, inputs["weighted_advantages"], np.nan))
        with tf.GradientTape() as tape:
            tape.watch(terms)
            if name == "entropy_loss":
                loss, expected = policy_gradient.entropy_loss(terms, mask), -mask.astype(np.float32)
            else:
                loss = policy_gradient.policy_gradient_loss(terms, weights, mask)
                expected = -np.where(mask, inputs["weighted_advantages"], 0.0)
        np.testing.assert_allclose(loss, (expected * inputs["values"]).sum(), rtol=1e-5)
        np.testing.assert_array_equal(tape.gradient(loss, terms), expected)


class DirectionTest(absltest.TestCase):
    """Tests of the effect of one gradient descent step."""

    def test_policy_gradient_raises_probability_of_good_actions(self):
        inputs = _inputs()
        _, gradients = _loss_and_gradients("policy_gradient_loss", inputs)
        logits = inputs["logits"]
        stepped = logits - 1e-2 * gradients["logits"].numpy()
        change = np.take_along_axis(
            numpy_reference.log_softmax(stepped) - numpy_reference.log_softmax(logits),
            inputs["actions"][..., None],
            axis=-1,
        )[..., 0]
        mask = inputs["mask"]
        np.testing.assert_array_equal(
            np.sign(change[mask]), np.sign(inputs["weighted_advantages"][mask])
        )

    def test_entropy_loss_raises_entropy(self):
        inputs = _inputs()
        _, gradients = _loss_and_gradients("entropy_loss", inputs)
        stepped = inputs["logits"] - 1e-2 * gradients["logits"].numpy()
        change = categorical.entropy(stepped) - categorical.entropy(inputs["logits"])
        self.assertGreater(change.numpy()[inputs["mask"]].min(), 0.0)


if __name__ == "__main__":
    absltest.main()
