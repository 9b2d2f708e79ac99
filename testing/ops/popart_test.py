import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import popart
from testing import numpy_reference

T, B, K, F, STEP = 7, 6, 4, 5, 3e-4
TASKS = np.array([0, 2, 2, 0, 1, 2], np.int32)  # task 3 is absent


def _statistics(seed=0):
    """Returns statistics with positive and negative means and scales from 0.1 to 1,000."""
    scales = np.array([0.1, 1.0, 30.0, 1000.0], np.float32)
    mean = (scales * np.random.default_rng(seed).normal(size=K)).astype(np.float32)
    return popart.Statistics(tf.constant(mean), tf.constant(scales**2))


def _targets(seed=1):
    return (50.0 * np.random.default_rng(seed).normal(size=[T, B]) + 20.0).astype(np.float32)


def _mask(seed=2):
    return np.random.default_rng(seed).uniform(size=[T, B]) > 0.3


def _second_moment(statistics):
    return statistics.variance.numpy().astype(float) + statistics.mean.numpy().astype(float) ** 2


class UpdateTest(parameterized.TestCase):
    @parameterized.parameters((3e-4, True), (0.1, False), (1.0, False))
    def test_updates_match_the_naive_loop(self, step, jit_compile):
        statistics = _statistics()
        first, second = statistics.mean, _second_moment(statistics)
        update = tf.function(popart.update, jit_compile=jit_compile)
        for seed in range(20):
            targets, mask = _targets(seed), _mask(seed)
            mask[:, TASKS == 1] &= seed % 2 > 0  # In every other update all targets are masked.
            old = statistics
            poisoned = tf.constant(np.where(mask, targets, np.nan), tf.float32)
            statistics = update(old, poisoned, mask, TASKS, step)
            first, second = numpy_reference.popart_update(first, second, targets, mask, TASKS, step)
            np.testing.assert_allclose(statistics.mean, first, rtol=1e-4)
            np.testing.assert_allclose(statistics.variance, second - first**2, rtol=2e-4)
            for before, after in zip(old, statistics, strict=True):
                changed = before.numpy() != after.numpy()
                np.testing.assert_array_equal(changed, [True, seed % 2 > 0, True, False])

    def test_batch_size_does_not_affect_the_step(self):
        # A batch is one step, independent of T, B and the number of batch entries of a task.
        once = popart.update(_statistics(), _targets(), _mask(), TASKS, STEP)
        doubled = (np.concatenate([x, x], -1) for x in (_targets(), _mask(), TASKS))
        twice = popart.update(_statistics(), *doubled, STEP)
        np.testing.assert_allclose(twice.mean, once.mean, rtol=1e-6)
        np.testing.assert_allclose(twice.variance, once.variance, rtol=1e-6)

    @parameterized.parameters(np.nan, np.inf, 1e30)
    def test_non_finite_targets_block_only_their_task(self, poison):
        # The learner skips weight updates with such targets, but NaN statistics could not recover.
        old, mask, targets = _statistics(), _mask(), _targets()
        clean = popart.update(old, targets, mask, TASKS, STEP)
        targets[0, 0], mask[0, 0] = poison, True
        new = popart.update(old, targets, mask, TASKS, STEP)
        for before, expected, actual in zip(old, clean, new, strict=True):
            self.assertEqual(actual[0], before[0])
            np.testing.assert_array_equal(actual[1:], expected[1:])

    def test_scale_that_rises_at_once_bounds_normalised_targets(self):
        old, targets, mask = _statistics(), 1e3 * _targets(), _mask()
        slow = popart.update(old, targets, mask, TASKS, STEP)
        poisoned = tf.constant(np.where(mask, targets, np.nan), tf.float32)
        new = popart.update(old, poisoned, mask, TASKS, STEP, rises_at_once=True)
        np.testing.assert_array_equal(new.mean, slow.mean)
        squares = np.square(popart.normalise(new, targets, TASKS))
        for task in range(K - 1):
            entries = task == TASKS
            mean_square = squares[:, entries][mask[:, entries]].mean()
            self.assertAlmostEqual(float(mean_square), 1.0, places=4)
        self.assertEqual(new.variance[K - 1], old.variance[K - 1])
        # Smaller targets change nothing.
        arguments = new, 1e-3 * targets, mask, TASKS, STEP
        for one, other in zip(
            popart.update(*arguments), popart.update(*arguments, rises_at_once=True), strict=True
        ):
            np.testing.assert_array_equal(one, other)

    def test_scale_far_below_the_mean_is_precise(self):
        # In float32, the difference of mean square and squared mean would be noise.
        rng = np.random.default_rng(0)
        statistics = popart.Statistics(tf.zeros([1]), tf.ones([1]))
        step = tf.function(popart.update)
        for _ in range(600):
            targets = (1000.0 + 0.05 * rng.normal(size=[20, 4])).astype(np.float32)
            statistics = step(
                statistics, targets, tf.ones([20, 4], tf.bool), tf.zeros([4], tf.int32), 0.05
            )
        np.testing.assert_allclose(statistics.mean, [1000.0], rtol=1e-5)
        np.testing.assert_allclose(popart.sigma(statistics), [0.05], rtol=0.1)


class NormaliseTest(parameterized.TestCase):
    def test_each_batch_entry_uses_the_formula_of_its_task(self):
        statistics, values = _statistics(), _targets()
        mean = statistics.mean.numpy()[TASKS]
        scale = np.sqrt(statistics.variance.numpy())[TASKS]
        for function, expected in (
            (popart.normalise, (values - mean) / scale),
            (popart.unnormalise, scale * values + mean),
        ):
            actual = function(statistics, values, TASKS)
            np.testing.assert_allclose(actual, expected, rtol=1e-5)
            # Values may lack a time axis.
            np.testing.assert_array_equal(function(statistics, values[0], TASKS), actual[0])

    @parameterized.parameters((0.0, 1e-4), (-1.0, 1e-4), (1e-9, 1e-4), (4.0, 2.0), (1e14, 1e6))
    def test_sigma_is_clipped(self, variance, expected):
        statistics = popart.Statistics(tf.zeros([1]), tf.constant([variance]))
        np.testing.assert_allclose(popart.sigma(statistics), [expected], rtol=1e-6)

    def test_only_values_receive_a_gradient(self):
        values, statistics = tf.constant(_targets()), _statistics()
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([values, *statistics])
            normalised = popart.normalise(statistics, values, TASKS)
            unnormalised = popart.unnormalise(statistics, values, TASKS)
            new = popart.update(statistics, values, _mask(), TASKS, STEP)
            scale = popart.sigma(statistics)
        for outcome in (normalised, unnormalised):
            self.assertIsNotNone(tape.gradient(outcome, values))
            self.assertEqual(tape.gradient(outcome, list(statistics)), [None, None])
        for outcome in (*new, scale):
            self.assertEqual(tape.gradient(outcome, [values, *statistics]), [None] * 3)


class PreserveOutputsTest(parameterized.TestCase):
    @parameterized.parameters(
        (1.0, 0.0), (1.0, 1.0), (1e4, 1.0), (1e-4, 1.0), (1.0, -50.0), (1e-3, 1e3), (1e8, 1.0)
    )
    def test_unnormalised_outputs_do_not_change(self, growth, shift):
        # The largest growth clips sigma.
        rng = np.random.default_rng(0)
        kernel, bias, features = (
            tf.constant(rng.normal(size=shape), tf.float32) for shape in ([F, K], [K], [8, F])
        )
        old = _statistics()
        new = popart.Statistics(old.mean + shift, old.variance * growth**2)
        new_kernel, new_bias = popart.preserve_outputs(old, new, kernel, bias)
        all_tasks = tf.range(K)
        before = popart.unnormalise(old, features @ kernel + bias, all_tasks)
        after = popart.unnormalise(new, features @ new_kernel + new_bias, all_tasks)
        # The precision is relative to the largest term of sigma w x + sigma b + mu.
        size = popart.sigma(old) + popart.sigma(new) * tf.abs(new_bias) + tf.abs(new.mean)
        np.testing.assert_array_less(tf.abs(after - before) / size, 1e-6)


if __name__ == "__main__":
    absltest.main()
