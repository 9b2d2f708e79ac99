import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import distributional_retrace, n_step
from testing import numpy_reference, reactor_reference

T, B, A, N = 6, 7, 3, 9
GAMMA = 0.9
SUPPORT = np.linspace(-4.0, 4.0, N).astype(np.float32)
ARGUMENTS = ("rewards", "discounts", "q_taken", "values", "traces", "is_transition", "support")


def _episodes():
    """Returns discounts and transitions with no, true and truncated ends of episodes."""
    discounts, is_transition = np.full([T, B], GAMMA, np.float32), np.ones([T, B], bool)
    true_ends = {1: (3,), 3: (0, 2), 4: (T - 1,)}
    time_limits = {2: (4,), 3: (4, 5), 4: (1,), 5: (0, T - 1)}
    for ends, discount in ((true_ends, 0.0), (time_limits, GAMMA)):
        for b, steps in ends.items():
            for t in steps:
                if t > 0:
                    discounts[t - 1, b] = discount
                is_transition[t, b] = False
    discounts[2, 6] = 0.0  # A lost life ends the return, but not the episode.
    return discounts, is_transition


def _inputs(seed=0, reward_scale=1.0, support=SUPPORT):
    """Returns inputs of the naive loop, with returns inside and outside of the support."""
    rng = np.random.default_rng(seed)
    discounts, is_transition = _episodes()
    pi = numpy_reference.softmax(rng.normal(size=[T + 1, B, A]))
    mu = numpy_reference.softmax(rng.normal(size=[T + 1, B, A]))
    actions = rng.integers(A, size=[T, B])
    taken = np.eye(A, dtype=bool)[actions]
    return {
        "rewards": reward_scale * rng.normal(size=[T, B]).astype(np.float32),
        "discounts": discounts,
        "q": numpy_reference.softmax(2 * rng.normal(size=[T + 1, B, A, len(support)])),
        "pi": pi,
        "actions": actions,
        "traces": np.minimum(1.0, (pi[:-1] / mu[:-1])[taken].reshape(T, B)).astype(np.float32),
        "is_transition": is_transition,
        "support": support,
    }


def _arguments(inputs):
    """Converts inputs of the naive loop to arguments of the op."""
    arguments = {name: inputs[name] for name in ARGUMENTS if name in inputs}
    taken = inputs["actions"][..., None, None]
    q_taken = np.take_along_axis(inputs["q"][:-1], taken, axis=2)[:, :, 0]
    values = np.einsum("tba,tban->tbn", inputs["pi"], inputs["q"])
    arguments["q_taken"], arguments["values"] = (
        q_taken.astype(np.float32),
        values.astype(np.float32),
    )
    return arguments


def _targets(arguments):
    # Tensors, because NumPy would warn of inf - inf in masked entries.
    tensors = {name: tf.constant(x) for name, x in arguments.items()}
    return distributional_retrace.distributional_retrace(**tensors)


def _poison(arguments, poison):
    """Replaces all values that the op must not read."""
    masked = ~arguments["is_transition"]
    for name in ("rewards", "discounts", "traces", "q_taken"):
        arguments[name][masked] = poison
    for name in ("traces", "q_taken", "values"):
        arguments[name][0] = poison
    arguments["values"][1:][masked] = poison


class DistributionalRetraceTest(parameterized.TestCase):
    @parameterized.product(reward_scale=(0.1, 1.0, 4.0), seed=(0, 1))
    def test_targets_match_the_naive_loop(self, reward_scale, seed):
        inputs = _inputs(seed, reward_scale)
        actual = _targets(_arguments(inputs))
        self.assertEqual((actual.dtype, actual.shape), (tf.float32, [T, B, N]))
        expected, _ = reactor_reference.distributional_retrace(**inputs)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)

    def test_target_masses_sum_to_one_or_are_masked(self):
        inputs = _inputs(reward_scale=4.0)
        _, alphas = reactor_reference.distributional_retrace(**inputs)
        np.testing.assert_allclose(alphas, inputs["is_transition"], rtol=1e-6)
        targets = _targets(_arguments(inputs)).numpy()
        np.testing.assert_allclose(targets.sum(-1), inputs["is_transition"], rtol=1e-5)
        np.testing.assert_array_equal(targets[~inputs["is_transition"]], 0.0)
        self.assertLess(targets.min(), -0.01)  # masses are not clipped

    @parameterized.parameters(0, 1, 2)
    def test_mean_matches_scalar_retrace_inside_the_support(self, seed):
        wide = np.linspace(-40.0, 40.0, 21).astype(np.float32)
        inputs = _inputs(seed, support=wide)
        inputs["q"][..., :7], inputs["q"][..., -7:] = 0.0, 0.0
        inputs["q"] /= inputs["q"].sum(-1, keepdims=True)
        arguments = _arguments(inputs)
        expected = reactor_reference.retrace(
            **{name: inputs[name] for name in ("rewards", "discounts", "traces", "is_transition")},
            q_taken=arguments["q_taken"] @ wide,
            values=arguments["values"] @ wide,
        )
        means = _targets(arguments).numpy() @ wide
        np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-4)

    def test_expected_masses_under_the_behaviour_are_not_negative(self):
        rng = np.random.default_rng(0)
        pi = numpy_reference.softmax(2 * rng.normal(size=[3, 1, A]))
        mu = numpy_reference.softmax(2 * rng.normal(size=[A]))
        q = numpy_reference.softmax(2 * rng.normal(size=[3, 1, A, N]))
        mean, minimum = np.zeros(N), 0.0
        for action in range(A):
            inputs = {
                "rewards": np.float32([[0.5], [-0.7]]),
                "discounts": np.full([2, 1], GAMMA, np.float32),
                "q": q,
                "pi": pi,
                "actions": np.array([[0], [action]]),
                "traces": np.float32([[1.0], [min(1.0, pi[1, 0, action] / mu[action])]]),
                "is_transition": np.ones([2, 1], bool),
                "support": SUPPORT,
            }
            target = _targets(_arguments(inputs))[0, 0].numpy()
            mean, minimum = mean + mu[action] * target, min(minimum, target.min())
        self.assertLess(minimum, -0.01)
        self.assertGreater(mean.min(), -1e-6)

    def test_two_steps_match_a_manual_calculation(self):
        # One action, support (0, 1, 2). All mass of x_1 is at 1. x_2 has half at 0 and half at 2.
        arguments = {
            "rewards": np.float32([[0.5], [1.0]]),
            "discounts": np.float32([[0.5], [0.5]]),
            "q_taken": np.float32([[[np.nan] * 3], [[0, 1, 0]]]),
            "values": np.float32([[[np.nan] * 3], [[0, 1, 0]], [[0.5, 0, 0.5]]]),
            "traces": np.float32([[np.nan], [0.25]]),
            "is_transition": np.ones([2, 1], bool),
            "support": np.float32([0, 1, 2]),
        }
        # t = 1: 1/2 at 1 + 0, 1/2 at 1 + 1.
        # t = 0: 3/4 at 0.5 + 0.5 = 1, 1/8 at 0.5 + 0.5 + 0 = 1, 1/8 at 0.5 + 0.5 + 0.25 * 2 = 1.5.
        np.testing.assert_allclose(
            _targets(arguments)[:, 0], [[0.0, 0.9375, 0.0625], [0.0, 0.5, 0.5]], rtol=1e-6
        )

    @parameterized.parameters(np.nan, np.inf, -np.inf)
    def test_masked_values_are_not_read(self, poison):
        arguments = _arguments(_inputs())
        clean = _targets(arguments)
        _poison(arguments, poison)
        np.testing.assert_array_equal(_targets(arguments), clean)

    def test_targets_have_no_gradient(self):
        arguments = {name: tf.constant(x) for name, x in _arguments(_inputs()).items()}
        watched = [arguments[name] for name in ARGUMENTS if name != "is_transition"]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            targets = distributional_retrace.distributional_retrace(**arguments)
        self.assertEqual(tape.gradient(targets, watched), [None] * 6)

    def test_xla_agrees_with_eager(self):
        arguments = _arguments(_inputs())
        _poison(arguments, np.nan)
        compiled = tf.function(distributional_retrace.distributional_retrace, jit_compile=True)
        np.testing.assert_allclose(compiled(**arguments), _targets(arguments), rtol=1e-5, atol=1e-6)


class ProjectTest(parameterized.TestCase):
    @parameterized.parameters(2, 3, 9, 51)
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
        project = tf.function(
            distributional_retrace.project,
            input_signature=[tf.TensorSpec([2, None, 4]), tf.TensorSpec([2, None, 4])]
            + [tf.TensorSpec([N])],
        )
        projected = project(atoms, tf.ones_like(atoms), SUPPORT)
        np.testing.assert_allclose(tf.reduce_sum(projected, -1), np.full([2, 3], 4.0), rtol=1e-5)


class LossAndPriorityTest(parameterized.TestCase):
    def _logits_and_targets(self):
        rng = np.random.default_rng(0)
        targets = rng.normal(size=[T, B, N]).astype(np.float32)
        return 3 * rng.normal(size=[T, B, N]).astype(np.float32), targets

    def test_cross_entropy_and_gradient_match_the_naive_loop(self):
        logits, targets = map(tf.constant, self._logits_and_targets())
        with tf.GradientTape() as tape:
            tape.watch([logits, targets])
            losses = distributional_retrace.cross_entropy(logits, targets)
        gradients = tape.gradient(losses, [logits, targets])
        log_q, q = numpy_reference.log_softmax(logits), numpy_reference.softmax(logits)
        for t, b in np.ndindex(T, B):
            expected = -sum(targets[t, b, i] * log_q[t, b, i] for i in range(N))
            np.testing.assert_allclose(losses[t, b], expected, rtol=1e-4, atol=1e-5)
            mass = sum(targets[t, b].numpy())
            slopes = [mass * q[t, b, i] - targets[t, b, i] for i in range(N)]
            np.testing.assert_allclose(gradients[0][t, b], slopes, rtol=1e-4, atol=1e-5)
        self.assertIsNone(gradients[1])

    def test_total_variation_matches_the_naive_loop(self):
        logits, targets = self._logits_and_targets()
        actual = distributional_retrace.total_variation(logits, targets)
        q = numpy_reference.softmax(logits)
        for t, b in np.ndindex(T, B):
            expected = sum(abs(targets[t, b, i] - q[t, b, i]) for i in range(N))
            np.testing.assert_allclose(actual[t, b], expected, rtol=1e-5)

    def test_priority_is_the_mean_total_variation(self):
        logits = tf.math.log(tf.constant([[[0.5, 0.5]], [[0.25, 0.75]], [[0.5, 0.5]]]))
        targets = tf.constant([[[1.0, 0.0]], [[0.25, 0.75]], [[np.nan, np.nan]]])
        differences = distributional_retrace.total_variation(logits, targets)
        mask = tf.constant([[True], [True], [False]])
        np.testing.assert_allclose(n_step.sequence_priorities(differences, mask, eta=0.0), [0.5])

    def test_total_variation_has_no_gradient(self):
        logits, targets = map(tf.constant, self._logits_and_targets())
        with tf.GradientTape() as tape:
            tape.watch([logits, targets])
            differences = distributional_retrace.total_variation(logits, targets)
        self.assertEqual(tape.gradient(differences, [logits, targets]), [None, None])


if __name__ == "__main__":
    absltest.main()
