import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import distributional_retrace
from testing import numpy_reference, reactor_reference
from testing.ops import cases
from testing.ops.cases import B, N, T


def _targets(arguments):
    return distributional_retrace.distributional_retrace(
        **{name: tf.constant(x) for name, x in arguments.items()}
    )


class DistributionalRetraceTest(parameterized.TestCase):
    @parameterized.parameters((0.1, 0), (4.0, 1))
    def test_targets_match_the_naive_loop(self, reward_scale, seed):
        arguments, inputs = cases.distributional_inputs(seed)
        arguments["rewards"] = inputs["rewards"] = inputs["rewards"] * np.float32(reward_scale)
        actual = _targets(arguments)
        self.assertEqual((actual.dtype, actual.shape), (tf.float32, [T, B, N]))
        expected, alphas = reactor_reference.distributional_retrace(**inputs)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
        # Masses sum to 1, or are masked. They are not clipped.
        np.testing.assert_allclose(alphas, inputs["is_transition"], rtol=1e-6)
        np.testing.assert_allclose(actual.numpy().sum(-1), inputs["is_transition"], rtol=1e-5)
        np.testing.assert_array_equal(actual.numpy()[~inputs["is_transition"]], 0.0)
        self.assertLess(actual.numpy().min(), -0.01)

    @parameterized.parameters(0, 1)
    def test_mean_matches_scalar_retrace_inside_the_support(self, seed):
        wide = np.linspace(-40.0, 40.0, 21).astype(np.float32)
        arguments, inputs = cases.distributional_inputs(seed, wide, inside=True)
        expected = numpy_reference.retrace(
            **{name: inputs[name] for name in ("rewards", "discounts", "traces", "is_transition")},
            q_taken=arguments["q_taken"] @ wide,
            values=arguments["values"] @ wide,
        )
        means = _targets(arguments).numpy() @ wide
        np.testing.assert_allclose(means, np.nan_to_num(expected), rtol=1e-4, atol=1e-4)


class ProjectTest(parameterized.TestCase):
    @parameterized.parameters(2, 9)
    def test_projection_matches_the_kernel_of_the_paper(self, points):
        rng = np.random.default_rng(0)
        support = np.linspace(-3.0, 5.0, points).astype(np.float32)
        atoms = rng.uniform(-6.0, 8.0, size=[5, 4]).astype(np.float32)
        atoms[0] = support[0], support[-1], support[1], -1e6
        masses = rng.normal(size=[5, 4]).astype(np.float32)
        actual = distributional_retrace.project(atoms, masses, support)
        self.assertEqual((actual.dtype, actual.shape), (tf.float32, [5, points]))
        expected = reactor_reference.project(atoms, masses, support)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)

    def test_dynamic_leading_axes_are_kept(self):
        atoms = tf.random.stateless_uniform([2, 3, 4], (0, 0), -5.0, 5.0)
        leading = tf.TensorSpec([2, None, 4])
        project = tf.function(
            distributional_retrace.project,
            input_signature=[leading, leading, tf.TensorSpec([N])],
        )
        projected = project(atoms, tf.ones_like(atoms), tf.linspace(-4.0, 4.0, N))
        np.testing.assert_allclose(tf.reduce_sum(projected, -1), np.full([2, 3], 4.0), rtol=1e-5)


class LossAndPriorityTest(absltest.TestCase):
    def test_loss_gradient_and_error_match_the_naive_loop(self):
        rng = np.random.default_rng(0)
        logits, targets = tf.constant(
            rng.normal(size=[2, T, B, N]) * [[[[3]]], [[[1]]]], tf.float32
        )
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([logits, targets])
            losses = distributional_retrace.cross_entropy(logits, targets)
            differences = distributional_retrace.total_variation(logits, targets)
        gradients = tape.gradient(losses, [logits, targets])
        self.assertEqual(tape.gradient(differences, [logits, targets]), [None, None])
        self.assertIsNone(gradients[1])
        log_q, q = numpy_reference.log_softmax(logits), numpy_reference.softmax(logits)
        for t, b in np.ndindex(T, B):
            target = targets[t, b].numpy()
            for actual, expected in (
                (losses[t, b], -sum(target[i] * log_q[t, b, i] for i in range(N))),
                (gradients[0][t, b], [sum(target) * q[t, b, i] - target[i] for i in range(N)]),
                (differences[t, b], sum(abs(target[i] - q[t, b, i]) for i in range(N))),
            ):
                np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    absltest.main()
