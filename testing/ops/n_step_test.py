import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import n_step, value_rescaling
from testing import numpy_reference
from testing.ops import rlax_oracle

T, B, A = 9, 7, 4
GAMMA = 0.9
STEPS = (1, 2, 3, 5, T, T + 1, 3 * T)


def _episodes():
    """Returns discounts and transitions with no, true and truncated ends of episodes.

    If x_t ends an episode, then step t is not a transition. The discount of step t - 1 is 0, unless
    a time limit ends the episode.
    """
    discounts, is_transition = np.full([T, B], GAMMA, np.float32), np.ones([T, B], bool)
    true_ends = {1: (3,), 3: (0, 2), 4: (T - 1,), 6: (T,)}
    time_limits = {2: (4,), 3: (5, 6), 4: (1,), 5: (0, T - 1)}
    for ends, discount in ((true_ends, 0.0), (time_limits, GAMMA)):
        for b, steps in ends.items():
            for t in steps:
                if t > 0:
                    discounts[t - 1, b] = discount
                if t < T:
                    is_transition[t, b] = False
    discounts[4, 6] = 0.0  # A lost life ends the return, but not the episode.
    return discounts, is_transition


def _inputs(seed=0):
    rng = np.random.default_rng(seed)
    discounts, is_transition = _episodes()
    return {
        "rewards": rng.normal(size=[T, B]).astype(np.float32),
        "discounts": discounts,
        "bootstrap_values": rng.normal(size=[T + 1, B]).astype(np.float32),
        "is_transition": is_transition,
    }


def _q_inputs(seed=0, scale=10.0):
    """Returns inputs with rescaled values and rewards of several hundred."""
    rng = np.random.default_rng(seed)
    inputs = _inputs(seed)
    del inputs["bootstrap_values"]
    inputs["rewards"] *= 10 * scale
    q_online, q_target = scale * rng.normal(size=[2, T + 1, B, A]).astype(np.float32)
    return {"q_online": q_online, "q_target": q_target} | inputs


def _never_bootstraps(is_transition):
    """Returns the mask [T + 1, B] of first steps that have a next step in their episode."""
    is_first = np.concatenate([np.ones_like(is_transition[:1]), ~is_transition])
    continues = np.concatenate([is_transition, np.zeros_like(is_transition[:1])])
    return is_first & continues


class NStepReturnsTest(parameterized.TestCase):
    @parameterized.parameters(*STEPS)
    def test_returns_match_the_naive_loop(self, n):
        actual = n_step.n_step_returns(**_inputs(), n=n)
        self.assertEqual((actual.dtype, actual.shape), (tf.float32, [T, B]))
        expected = numpy_reference.n_step_returns(**_inputs(), n=n)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)

    @parameterized.product(n=STEPS, time_limits=(False, True))
    def test_returns_match_rlax(self, n, time_limits):
        inputs = _inputs()
        if not time_limits:
            inputs["is_transition"][:] = True
        mask = inputs["is_transition"]
        actual = n_step.n_step_returns(**inputs, n=n).numpy()
        expected = rlax_oracle.n_step_returns(**inputs, n=n)
        np.testing.assert_allclose(actual[mask], expected[mask], rtol=1e-5, atol=1e-5)

    def test_three_steps_match_a_manual_calculation(self):
        returns = [
            n_step.n_step_returns(
                rewards=tf.constant([[1.0], [2.0], [4.0]]),
                discounts=tf.fill([3, 1], 0.5),
                bootstrap_values=tf.constant([[100.0], [200.0], [400.0], [800.0]]),
                is_transition=tf.ones([3, 1], tf.bool),
                n=n,
            )[:, 0]
            for n in (1, 2, 3, 4)
        ]
        np.testing.assert_array_equal(returns[0], [101.0, 202.0, 404.0])
        np.testing.assert_array_equal(returns[1], [102.0, 204.0, 404.0])
        np.testing.assert_array_equal(returns[2], [103.0, 204.0, 404.0])
        np.testing.assert_array_equal(returns[3], [103.0, 204.0, 404.0])

    @parameterized.product(discount=(0.0, 1.0), n=(1, 2, 3, 7))
    def test_only_time_limits_bootstrap_at_the_end(self, discount, n):
        # x_2 ends the episode, by termination or a time limit. x_3 starts the next.
        gamma, v, r = 0.5, [1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 5.0, np.nan, 7.0]
        returns = n_step.n_step_returns(
            rewards=tf.constant(r)[:, None],
            discounts=tf.constant([[gamma], [gamma * discount], [gamma], [gamma]]),
            bootstrap_values=tf.constant(v)[:, None],
            is_transition=tf.constant([[True], [True], [False], [True]]),
            n=n,
        )
        last = r[1] + gamma * discount * v[2]
        first = r[0] + gamma * (v[1] if n == 1 else last)
        np.testing.assert_array_equal(returns[:, 0], [first, last, v[2], r[3] + gamma * v[4]])

    @parameterized.product(poison=(np.nan, np.inf, -np.inf), n=STEPS)
    def test_masked_values_are_not_read(self, poison, n):
        inputs = _inputs()
        clean = n_step.n_step_returns(**inputs, n=n)
        for name in ("rewards", "discounts"):
            inputs[name][~inputs["is_transition"]] = poison
        inputs["bootstrap_values"][_never_bootstraps(inputs["is_transition"])] = poison
        # Tensors, because NumPy would warn of inf - inf in masked entries.
        poisoned = {name: tf.constant(x) for name, x in inputs.items()}
        np.testing.assert_array_equal(n_step.n_step_returns(**poisoned, n=n), clean)

    @parameterized.parameters(1, 3, 5)
    def test_returns_depend_on_n_steps_only(self, n):
        inputs = _inputs()
        inputs["is_transition"][:], inputs["discounts"][:] = True, GAMMA
        before = n_step.n_step_returns(**inputs, n=n).numpy()
        inputs["rewards"][n:] += 1.0
        inputs["bootstrap_values"][n + 1 :] += 1.0
        np.testing.assert_array_equal(n_step.n_step_returns(**inputs, n=n)[0], before[0])
        inputs["rewards"][n - 1] += 1.0
        after = n_step.n_step_returns(**inputs, n=n).numpy()
        np.testing.assert_allclose(after[0] - before[0], GAMMA ** (n - 1), rtol=1e-5)
        inputs["bootstrap_values"][n] += 1.0
        last = n_step.n_step_returns(**inputs, n=n).numpy()
        np.testing.assert_allclose(last[0] - after[0], GAMMA**n, rtol=1e-5)

    def test_returns_have_no_gradient(self):
        inputs = {name: tf.constant(x) for name, x in _inputs().items()}
        watched = [inputs[name] for name in ("rewards", "discounts", "bootstrap_values")]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            returns = n_step.n_step_returns(**inputs, n=3)
        self.assertEqual(tape.gradient(returns, watched), [None] * 3)

    def test_xla_agrees_with_eager(self):
        inputs = _inputs()
        inputs["rewards"][~inputs["is_transition"]] = np.nan
        compiled = tf.function(n_step.n_step_returns, jit_compile=True)
        np.testing.assert_allclose(
            compiled(**inputs, n=5), n_step.n_step_returns(**inputs, n=5), rtol=1e-5, atol=1e-6
        )


class DoubleQTargetsTest(parameterized.TestCase):
    @parameterized.product(n=STEPS, rescaling_epsilon=(1e-3, 1e-2, None))
    def test_targets_match_the_naive_loop(self, n, rescaling_epsilon):
        settings = {"n": n, "rescaling_epsilon": rescaling_epsilon}
        actual = n_step.double_q_targets(**_q_inputs(), **settings)
        self.assertEqual((actual.dtype, actual.shape), (tf.float32, [T, B]))
        expected = numpy_reference.double_q_targets(**_q_inputs(), **settings)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)

    @parameterized.product(n=STEPS, rescaled=(False, True))
    def test_targets_match_rlax(self, n, rescaled):
        inputs = _q_inputs()
        inputs["is_transition"][:] = True
        actual = n_step.double_q_targets(
            **inputs, n=n, rescaling_epsilon=1e-3 if rescaled else None
        )
        del inputs["is_transition"]
        expected = rlax_oracle.double_q_targets(**inputs, n=n, rescaled=rescaled)
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)

    @parameterized.parameters((1e-3, 2.008), (None, 6.5 + 0.5 * 1.003))
    def test_online_network_selects_the_action(self, rescaling_epsilon, expected):
        # h(3) = 1.003 and h(8) = 2.008. The online network selects the action with target value 3,
        # although the other action has target value 8. The target is 6.5 + 0.5 * 3 = 8.
        targets = n_step.double_q_targets(
            q_online=tf.constant([[[5.0, 0.0]], [[1.0, 2.0]]]),
            q_target=tf.constant([[[-7.0, 7.0]], [[2.008, 1.003]]]),
            rewards=tf.constant([[6.5]]),
            discounts=tf.constant([[0.5]]),
            is_transition=tf.constant([[True]]),
            n=5,
            rescaling_epsilon=rescaling_epsilon,
        )
        np.testing.assert_allclose(targets, [[expected]], rtol=1e-6)

    def test_only_time_limits_bootstrap_rescaled_targets(self):
        # x_1 ends both episodes: the first by termination, the second by a time limit.
        targets = n_step.double_q_targets(
            q_online=tf.fill([3, 2, 1], 7.0),
            q_target=tf.fill([3, 2, 1], 1.003),
            rewards=tf.constant([[8.0, 6.5], [np.nan, np.nan]]),
            discounts=tf.constant([[0.0, 0.5], [np.nan, np.nan]]),
            is_transition=tf.constant([[True, True], [False, False]]),
            n=5,
            rescaling_epsilon=1e-3,
        )
        np.testing.assert_allclose(targets, [[2.008, 2.008], [1.003, 1.003]], rtol=1e-6)

    @parameterized.parameters(1e-3, None)
    def test_correct_values_are_a_fixed_point(self, rescaling_epsilon):
        # A constant reward of 2 has the value 2 / (1 - gamma), for any n.
        value = tf.fill([T + 1, B, A], 2.0 / (1.0 - GAMMA))
        q = value if rescaling_epsilon is None else value_rescaling.rescale(value, 1e-3)
        for n in STEPS:
            targets = n_step.double_q_targets(
                q_online=q,
                q_target=q,
                rewards=tf.fill([T, B], 2.0),
                discounts=tf.fill([T, B], GAMMA),
                is_transition=tf.ones([T, B], tf.bool),
                n=n,
                rescaling_epsilon=rescaling_epsilon,
            )
            np.testing.assert_allclose(targets, q[1:, :, 0], rtol=1e-5)

    @parameterized.product(poison=(np.nan, np.inf), rescaling_epsilon=(1e-3, None))
    def test_masked_values_are_not_read(self, poison, rescaling_epsilon):
        inputs, settings = _q_inputs(), {"n": 3, "rescaling_epsilon": rescaling_epsilon}
        clean = n_step.double_q_targets(**inputs, **settings)
        best = np.eye(A, dtype=bool)[inputs["q_online"].argmax(-1)]
        inputs["q_target"][~best] = poison
        for name in ("rewards", "discounts"):
            inputs[name][~inputs["is_transition"]] = poison
        for name in ("q_online", "q_target"):
            inputs[name][_never_bootstraps(inputs["is_transition"])] = poison
        np.testing.assert_array_equal(n_step.double_q_targets(**inputs, **settings), clean)

    @parameterized.parameters(1e-3, None)
    def test_targets_have_no_gradient(self, rescaling_epsilon):
        inputs = {name: tf.constant(x) for name, x in _q_inputs().items()}
        watched = [x for name, x in inputs.items() if name != "is_transition"]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            targets = n_step.double_q_targets(**inputs, n=3, rescaling_epsilon=rescaling_epsilon)
        self.assertEqual(tape.gradient(targets, watched), [None] * 4)

    @parameterized.parameters(1e-3, None)
    def test_xla_agrees_with_eager(self, rescaling_epsilon):
        inputs, settings = _q_inputs(), {"n": 5, "rescaling_epsilon": rescaling_epsilon}
        inputs["rewards"][~inputs["is_transition"]] = np.nan
        compiled = tf.function(lambda x: n_step.double_q_targets(**x, **settings), jit_compile=True)
        np.testing.assert_allclose(
            compiled(inputs), n_step.double_q_targets(**inputs, **settings), rtol=1e-4, atol=1e-4
        )


class SequencePrioritiesTest(parameterized.TestCase):
    def _errors_and_mask(self):
        """Returns errors and a mask with empty, full, single-step and partial columns."""
        rng = np.random.default_rng(0)
        mask = rng.uniform(size=[T, B]) > 0.4
        mask[:, 0], mask[:, 1], mask[:, 2] = False, True, np.arange(T) == 4
        return rng.normal(size=[T, B]).astype(np.float32), mask

    @parameterized.parameters(0.0, 0.3, 0.9, 1.0)
    def test_priorities_match_the_naive_loop(self, eta):
        errors, mask = self._errors_and_mask()
        actual = n_step.sequence_priorities(errors, mask, eta)
        self.assertEqual((actual.dtype, actual.shape), (tf.float32, [B]))
        expected = numpy_reference.sequence_priorities(errors, mask, eta, n_step.MIN_PRIORITY)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)

    def test_priorities_match_a_manual_calculation(self):
        errors = tf.constant([[1.0, 4.0], [-3.0, -9.0], [2.0, 5.0]])
        mask = tf.constant([[True, True], [True, False], [True, False]])
        priorities = n_step.sequence_priorities(errors, mask, 0.9)
        np.testing.assert_allclose(priorities, [0.9 * 3 + 0.1 * 2, 4.0], rtol=1e-6)

    def test_zero_errors_give_the_minimum_priority(self):
        errors = np.array([[0.0, 5.0], [0.0, 5.0]], np.float32)
        mask = np.array([[True, False], [True, False]])
        priorities = n_step.sequence_priorities(errors, mask, 0.9).numpy()
        np.testing.assert_array_equal(priorities, np.float32([n_step.MIN_PRIORITY] * 2))
        self.assertGreater(priorities.min(), 0.0)

    @parameterized.parameters(np.nan, np.inf, -np.inf)
    def test_masked_errors_are_not_read(self, poison):
        errors, mask = self._errors_and_mask()
        clean = n_step.sequence_priorities(errors, mask, 0.9)
        errors[~mask] = poison
        np.testing.assert_array_equal(n_step.sequence_priorities(errors, mask, 0.9), clean)

    def test_priorities_have_no_gradient(self):
        errors, mask = map(tf.constant, self._errors_and_mask())
        with tf.GradientTape() as tape:
            tape.watch(errors)
            priorities = n_step.sequence_priorities(errors, mask, 0.9)
        self.assertIsNone(tape.gradient(priorities, errors))


if __name__ == "__main__":
    absltest.main()
