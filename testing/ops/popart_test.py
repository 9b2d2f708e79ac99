import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import popart
from testing import numpy_reference
from testing.ops import rlax_oracle

T, B, K, F = 7, 6, 4, 5
TASKS = np.array([0, 2, 2, 0, 1, 2], np.int32)  # task 3 is absent


def _statistics(seed=0):
    """Returns statistics with positive and negative means and scales from 0.1 to 1,000."""
    rng = np.random.default_rng(seed)
    scales = np.array([0.1, 1.0, 30.0, 1000.0], np.float32)
    mean = (scales * rng.normal(size=K)).astype(np.float32)
    return popart.Statistics(tf.constant(mean), tf.constant(scales**2))


def _targets(seed=1):
    return (50.0 * np.random.default_rng(seed).normal(size=[T, B]) + 20.0).astype(np.float32)


def _mask(seed=2):
    return np.random.default_rng(seed).uniform(size=[T, B]) > 0.3


def _second_moment(statistics):
    return statistics.variance.numpy().astype(float) + statistics.mean.numpy().astype(float) ** 2


class UpdateTest(parameterized.TestCase):
    @parameterized.parameters(3e-4, 0.1, 1.0)
    def test_update_matches_the_naive_loop(self, step):
        old = _statistics()
        new = popart.update(old, _targets(), _mask(), TASKS, step)
        first, second = numpy_reference.popart_update(
            old.mean, _second_moment(old), _targets(), _mask(), TASKS, step
        )
        np.testing.assert_allclose(new.mean, first, rtol=1e-5)
        np.testing.assert_allclose(new.variance, second - first**2, rtol=1e-4)
        np.testing.assert_allclose(popart.sigma(new), np.sqrt(second - first**2), rtol=1e-4)

    def test_many_updates_match_the_naive_loop(self):
        statistics = _statistics()
        first, second = statistics.mean, _second_moment(statistics)
        for seed in range(100):
            targets, mask = _targets(seed), _mask(seed)
            tasks = np.random.default_rng(seed).integers(K, size=B)
            statistics = popart.update(statistics, targets, mask, tasks, 0.05)
            first, second = numpy_reference.popart_update(first, second, targets, mask, tasks, 0.05)
        np.testing.assert_allclose(statistics.mean, first, rtol=1e-4)
        np.testing.assert_allclose(statistics.variance, second - first**2, rtol=1e-4)

    def test_default_step_is_3e_4_as_in_the_paper(self):
        arguments = (_statistics(), _targets(), _mask(), TASKS)
        np.testing.assert_array_equal(
            popart.update(*arguments).mean, popart.update(*arguments, 3e-4).mean
        )

    def test_update_matches_rlax_with_a_step_for_each_target(self):
        old, targets = _statistics(), _targets()
        tasks = np.array([0, 1, 2, 3, 2, 1], np.int32)[:4]  # each task has T targets
        rng = np.random.default_rng(3)
        kernel, bias = (rng.normal(size=shape).astype(np.float32) for shape in ([F, K], [K]))
        new = popart.update(old, targets[:, :4], np.ones([T, 4], bool), tasks, 0.07)
        actual = (new.mean, popart.sigma(new), *popart.preserve_outputs(old, new, kernel, bias))
        expected = rlax_oracle.popart(
            old.mean.numpy(),
            old.variance.numpy(),
            kernel,
            bias,
            targets[:, :4],
            tasks,
            0.07 / T,
        )
        for ours, reference in zip(actual, expected, strict=True):
            np.testing.assert_allclose(ours, reference, rtol=1e-4)

    def test_batch_size_does_not_affect_the_step(self):
        # A batch is one step, independent of T, B and the number of batch entries of a task.
        once = popart.update(_statistics(), _targets(), _mask(), TASKS)
        twice = popart.update(
            _statistics(),
            np.concatenate([_targets()] * 2, 1),
            np.concatenate([_mask()] * 2, 1),
            np.concatenate([TASKS] * 2),
        )
        np.testing.assert_allclose(twice.mean, once.mean, rtol=1e-6)
        np.testing.assert_allclose(twice.variance, once.variance, rtol=1e-6)

    def test_absent_and_masked_tasks_do_not_change(self):
        old, mask = _statistics(), _mask()
        mask[:, TASKS == 1] = False
        new = popart.update(old, _targets(), mask, TASKS, 0.3)
        for before, after in zip(old, new, strict=True):
            np.testing.assert_array_equal(before[1].numpy(), after[1].numpy())
            np.testing.assert_array_equal(before[3].numpy(), after[3].numpy())
            self.assertTrue((before.numpy() != after.numpy())[[0, 2]].all())

    @parameterized.parameters(np.nan, np.inf, -np.inf)
    def test_masked_targets_are_not_read(self, poison):
        clean = popart.update(_statistics(), _targets(), _mask(), TASKS)
        targets = np.where(_mask(), _targets(), np.float32(poison))
        for expected, actual in zip(
            clean, popart.update(_statistics(), targets, _mask(), TASKS), strict=True
        ):
            np.testing.assert_array_equal(actual, expected)

    @parameterized.parameters(np.nan, np.inf, 1e30)
    def test_non_finite_targets_block_only_their_task(self, poison):
        # The learner skips weight updates with such targets, but NaN statistics could not recover.
        old, mask, targets = _statistics(), _mask(), _targets()
        clean = popart.update(old, targets, mask, TASKS)
        targets[0, 0], mask[0, 0] = poison, True
        new = popart.update(old, targets, mask, TASKS)
        for before, expected, actual in zip(old, clean, new, strict=True):
            self.assertEqual(actual[0], before[0])
            np.testing.assert_array_equal(actual[1:], expected[1:])

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

    def test_normalised_targets_are_bounded(self):
        # Van Hasselt et al., proposition 1: |(G - mu) / sigma| <= sqrt((1 - step) / step).
        tasks, step = tf.zeros([1], tf.int32), 0.01
        for target in (1e-3, 1.0, 1e4, -1e5):
            old = popart.Statistics(tf.zeros([1]), tf.ones([1]))
            new = popart.update(old, [[target]], [[True]], tasks, step)
            normalised = abs(float(popart.normalise(new, [[target]], tasks)[0, 0]))
            self.assertLessEqual(normalised, 1.0001 * np.sqrt((1 - step) / step))

    def test_xla_agrees_with_eager(self):
        targets = np.where(_mask(), _targets(), np.nan)
        arguments = (_statistics(), targets, _mask(), TASKS)
        compiled = tf.function(popart.update, jit_compile=True)(*arguments)
        for actual, expected in zip(compiled, popart.update(*arguments), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5)


class NormaliseTest(parameterized.TestCase):
    def test_each_batch_entry_uses_the_formula_of_its_task(self):
        statistics, values = _statistics(), _targets()
        mean, scale = statistics.mean.numpy(), np.sqrt(statistics.variance.numpy())
        for b, task in enumerate(TASKS):
            np.testing.assert_allclose(
                popart.normalise(statistics, values, TASKS)[:, b],
                (values[:, b] - mean[task]) / scale[task],
                rtol=1e-5,
            )
            np.testing.assert_allclose(
                popart.unnormalise(statistics, values, TASKS)[:, b],
                scale[task] * values[:, b] + mean[task],
                rtol=1e-5,
            )

    def test_values_may_lack_a_time_axis(self):
        statistics, values = _statistics(), _targets()
        for function in (popart.normalise, popart.unnormalise):
            np.testing.assert_array_equal(
                function(statistics, values[0], TASKS), function(statistics, values, TASKS)[0]
            )

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
            new = popart.update(statistics, values, _mask(), TASKS)
            scale = popart.sigma(statistics)
        for outcome in (normalised, unnormalised):
            self.assertIsNotNone(tape.gradient(outcome, values))
            self.assertEqual(tape.gradient(outcome, list(statistics)), [None, None])
        for outcome in (*new, scale):
            self.assertEqual(tape.gradient(outcome, [values, *statistics]), [None] * 3)


class PreserveOutputsTest(parameterized.TestCase):
    @parameterized.parameters(
        (1.0, 1.0), (1e4, 1.0), (1e-4, 1.0), (3.0, 0.0), (1.0, -50.0), (1e-3, 1e3)
    )
    def test_unnormalised_outputs_do_not_change(self, growth, shift):
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

    def test_clipped_sigma_preserves_outputs(self):
        old = popart.Statistics(tf.zeros([1]), tf.zeros([1]))
        new = popart.Statistics(tf.ones([1]), tf.constant([1e16]))
        kernel, bias = tf.constant([[3.0]]), tf.constant([2.0])
        new_kernel, new_bias = popart.preserve_outputs(old, new, kernel, bias)
        np.testing.assert_allclose(new_kernel, [[3e-10]], rtol=1e-5)
        np.testing.assert_allclose(1e6 * new_bias + 1.0, 1e-4 * bias, atol=1e-6)

    def test_unchanged_statistics_keep_the_layer(self):
        rng = np.random.default_rng(0)
        kernel, bias = (rng.normal(size=shape).astype(np.float32) for shape in ([F, K], [K]))
        new_kernel, new_bias = popart.preserve_outputs(_statistics(), _statistics(), kernel, bias)
        np.testing.assert_array_equal(new_kernel, kernel)
        np.testing.assert_allclose(new_bias, bias, rtol=1e-6)


if __name__ == "__main__":
    absltest.main()
