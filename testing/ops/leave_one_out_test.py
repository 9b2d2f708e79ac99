import math

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import leave_one_out
from testing import numpy_reference, reactor_reference

T, B, A = 6, 5, 4
CLIPS = (1.0, 2.0, 10.0, math.inf)
ESTIMATES = ("beta_leave_one_out", "truncated_importance_sampling")


def _inputs(name, seed=0):
    """Returns inputs with ratios and 1 / mu below and above the clips, and masked steps."""
    rng = np.random.default_rng(seed)
    pi = numpy_reference.softmax(2 * rng.normal(size=[T, B, A])).astype(np.float32)
    mu = numpy_reference.softmax(2 * rng.normal(size=[T, B, A])).astype(np.float32)
    actions = rng.integers(A, size=[T, B]).astype(np.int32)
    inputs = {
        "pi": pi,
        "q_values": rng.normal(size=[T, B, A]).astype(np.float32),
        "returns": rng.normal(size=[T, B]).astype(np.float32),
        "actions": actions,
        "mu": mu,
        "mask": rng.uniform(size=[T, B]) > 0.3,
    }
    if name == "beta_leave_one_out":
        inputs["mu_taken"] = np.take_along_axis(inputs.pop("mu"), actions[..., None], -1)[..., 0]
    return inputs


def _loss_and_gradients(name, inputs, clip):
    """Returns the loss [T, B] and the gradients of its sum in all float arguments, by name."""
    arguments = {key: tf.constant(x) for key, x in inputs.items()}
    floats = {key: x for key, x in arguments.items() if x.dtype == tf.float32}
    with tf.GradientTape() as tape:
        tape.watch(floats)
        loss = getattr(leave_one_out, name)(**arguments, clip=clip)
    return loss, tape.gradient(loss, floats)


class EstimatesTest(parameterized.TestCase):
    @parameterized.product(name=ESTIMATES, clip=CLIPS)
    def test_loss_and_gradient_match_the_naive_loop(self, name, clip):
        inputs = _inputs(name)
        loss, gradients = _loss_and_gradients(name, inputs, clip)
        self.assertEqual((loss.dtype, loss.shape), (tf.float32, [T, B]))
        expected, gradient = getattr(reactor_reference, name)(**inputs, clip=clip)
        np.testing.assert_allclose(loss, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gradients["pi"], gradient, rtol=1e-4, atol=1e-5)

    @parameterized.parameters(*ESTIMATES)
    def test_only_the_policy_receives_a_gradient(self, name):
        _, gradients = _loss_and_gradients(name, _inputs(name), 2.0)
        receivers = [key for key, gradient in gradients.items() if gradient is not None]
        self.assertEqual(receivers, ["pi"])

    @parameterized.product(name=ESTIMATES, poison=(np.nan, np.inf, 0.0), clip=(1.0, math.inf))
    def test_masked_steps_have_neither_loss_nor_gradient(self, name, poison, clip):
        inputs = _inputs(name)
        clean_loss, clean = _loss_and_gradients(name, inputs, clip)
        for array in inputs.values():
            if array.dtype == np.float32:
                array[~inputs["mask"]] = poison
        inputs["actions"][~inputs["mask"]] = -1
        loss, gradients = _loss_and_gradients(name, inputs, clip)
        np.testing.assert_array_equal(loss, clean_loss)
        np.testing.assert_array_equal(gradients["pi"], clean["pi"])
        np.testing.assert_array_equal(loss[~inputs["mask"]], 0.0)
        np.testing.assert_array_equal(gradients["pi"][~inputs["mask"]], 0.0)

    def test_leave_one_out_replaces_the_value_by_the_return(self):
        # Equation 9: with a clip of 1, beta is 1 for any mu.
        inputs = _inputs("beta_leave_one_out")
        loss, _ = _loss_and_gradients("beta_leave_one_out", inputs, 1.0)
        replaced = inputs["q_values"].copy()
        np.put_along_axis(replaced, inputs["actions"][..., None], inputs["returns"][..., None], -1)
        expected = -np.where(inputs["mask"], (replaced * inputs["pi"]).sum(-1), 0.0)
        np.testing.assert_allclose(loss, expected, rtol=1e-5, atol=1e-6)


class BanditTest(parameterized.TestCase):
    """Tests of expected estimates on a random bandit against the true gradient."""

    def _bandit(self, seed):
        rng = np.random.default_rng(seed)
        logits = rng.normal(size=[A]).astype(np.float32)
        mu = numpy_reference.softmax(rng.normal(size=[A])).astype(np.float32)
        true_values, q_values = rng.normal(size=[2, A]).astype(np.float32)
        return logits, mu, true_values, q_values

    def _expected_estimate(self, name, bandit, clip):
        """Returns the expectation under mu of the estimate with returns Q^pi(a), [A]."""
        logits, mu, true_values, q_values = map(tf.constant, bandit)
        actions = tf.range(A)[None]
        weights = {"mu_taken": mu[None]}
        if name == "truncated_importance_sampling":
            weights = {"mu": tf.tile(mu[None, None], [1, A, 1])}
        with tf.GradientTape() as tape:
            tape.watch(logits)
            pi = tf.tile(tf.nn.softmax(logits)[None, None], [1, A, 1])
            losses = getattr(leave_one_out, name)(
                pi=pi,
                q_values=tf.tile(q_values[None, None], [1, A, 1]),
                returns=true_values[None],
                actions=actions,
                mask=tf.ones([1, A], tf.bool),
                clip=clip,
                **weights,
            )
            loss = tf.reduce_sum(mu * losses[0])
        return -tape.gradient(loss, logits).numpy()

    def _jacobian(self, logits):
        """Returns d pi(a) / d logits[b], [A, A]."""
        pi = numpy_reference.softmax(logits)
        return np.diag(pi) - np.outer(pi, pi)

    @parameterized.product(seed=(0, 1, 2), clip=CLIPS)
    def test_bias_of_beta_leave_one_out_matches_proposition_1(self, seed, clip):
        bandit = logits, mu, true_values, q_values = self._bandit(seed)
        estimate = self._expected_estimate("beta_leave_one_out", bandit, clip)
        bias = np.zeros(A)
        for a in range(A):
            beta = min(clip, 1 / mu[a])
            bias += (1 - mu[a] * beta) * self._jacobian(logits)[a] * (q_values[a] - true_values[a])
        self.assertEqual(np.abs(bias).max() > 1e-3, clip < 1 / mu.min())
        true_gradient = true_values @ self._jacobian(logits)
        np.testing.assert_allclose(estimate - true_gradient, bias, atol=1e-6)

    @parameterized.product(name=ESTIMATES, seed=(0, 1, 2))
    def test_infinite_clip_is_unbiased(self, name, seed):
        bandit = logits, _, true_values, _ = self._bandit(seed)
        estimate = self._expected_estimate(name, bandit, math.inf)
        np.testing.assert_allclose(estimate, true_values @ self._jacobian(logits), atol=1e-6)

    @parameterized.product(name=ESTIMATES, seed=(0, 1, 2), clip=CLIPS)
    def test_correct_values_are_unbiased(self, name, seed, clip):
        logits, mu, true_values, _ = self._bandit(seed)
        bandit = logits, mu, true_values, true_values
        estimate = self._expected_estimate(name, bandit, clip)
        np.testing.assert_allclose(estimate, true_values @ self._jacobian(logits), atol=1e-6)


if __name__ == "__main__":
    absltest.main()
