"""Aggregates against numbers worked out by hand, and why their order matters."""

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.scores import aggregates
from testing import messages

NAN = np.nan


class AggregateTest(parameterized.TestCase):
    def test_the_median_is_the_middle_or_the_middle_twos_mean(self):
        scores = {"pong": 1.5, "breakout": 9.0, "pitfall": 0.0}
        self.assertEqual(aggregates.median_normalised(scores), 1.5)
        self.assertEqual(aggregates.median_normalised({**scores, "zaxxon": 0.5}), 1.0)

    def test_the_mean_is_capped_for_each_task_and_not_from_below(self):
        scores = {"rooms_watermaze": 3.0, "psychlab_visual_search": 0.5, "natlab": -0.5}
        self.assertAlmostEqual(aggregates.mean_capped_normalised(scores), (1 + 0.5 - 0.5) / 3)
        self.assertAlmostEqual(aggregates.mean_normalised(scores), 1.0)

    @parameterized.product(
        aggregate=(
            aggregates.median_normalised,
            aggregates.mean_normalised,
            aggregates.mean_capped_normalised,
        ),
        score=(NAN, np.inf, None),
    )
    def test_what_is_no_number_is_refused(self, aggregate, score):
        with messages.raises(ValueError, "zaxxon", score):
            aggregate({"pong": 1.0, "zaxxon": score})
        with self.assertRaises(ValueError):
            aggregate({})


class TrailingMeansTest(absltest.TestCase):
    def test_the_last_episodes_up_to_each_frame(self):
        steps, values = [10, 10, 20, 40], [1.0, 3.0, 8.0, 10.0]
        means = aggregates.trailing_means(steps, values, np.array([9, 10, 19.9, 20, 40, 99]), 2)
        np.testing.assert_array_equal(means, [NAN, 2.0, 2.0, 5.5, 9.0, 9.0])

    def test_fewer_where_there_are_no_more(self):
        means = aggregates.trailing_means([1, 2, 3], [3.0, 5.0, 7.0], [1, 2, 3], 100)
        np.testing.assert_array_equal(means, [3.0, 4.0, 5.0])

    def test_what_is_out_of_order_or_odd_is_refused(self):
        with self.assertRaises(ValueError):
            aggregates.trailing_means([2, 1], [0.0, 0.0], [1], 1)
        with messages.raises(ValueError, "[2]", "[1]"):
            aggregates.trailing_means([1, 2], [0.0], [1], 1)


class WindowMeansTest(absltest.TestCase):
    def test_the_episodes_that_ended_within_the_window(self):
        steps, values = [10, 10, 20, 40], [1.0, 3.0, 8.0, 10.0]
        at = np.array([9, 10, 19, 20, 30, 40, 50])
        means = aggregates.window_means(steps, values, at, 20)
        # 30's window begins after 10.
        np.testing.assert_array_equal(means, [NAN, 2.0, 2.0, 4.0, 8.0, 10.0, 10.0])
        np.testing.assert_array_equal(
            aggregates.window_means(steps, values, at, 1)[4:], [NAN, 10.0, NAN]
        )

    def test_it_is_the_bucket_that_ends_there(self):
        steps, values = [1, 999_999, 1_000_001, 2_000_001], [1.0, 3.0, 10.0, 7.0]
        at = [1_000_000, 2_000_000, 3_000_000]
        np.testing.assert_array_equal(
            aggregates.window_means(steps, values, at, 1_000_000),
            aggregates.bucket_means(steps, values, 1_000_000),
        )

    def test_what_is_out_of_order_or_odd_is_refused(self):
        with self.assertRaises(ValueError):
            aggregates.window_means([2, 1], [0.0, 0.0], [1], 1)
        with messages.raises(ValueError, "[2]", "[1]"):
            aggregates.window_means([1, 2], [0.0], [1], 1)


class BucketMeansTest(parameterized.TestCase):
    def test_a_bucket_holds_its_first_frame_and_not_its_last(self):
        steps = [0, 999_999, 1_000_000, 2_500_000]
        means = aggregates.bucket_means(steps, [1.0, 3.0, 10.0, 7.0], aggregates.ATARI_BUCKET)
        np.testing.assert_array_equal(means, [2.0, 10.0, 7.0])

    def test_the_order_of_episodes_does_not_matter(self):
        means = aggregates.bucket_means([25, 3, 14, 9], [8.0, 1.0, 4.0, 2.0], 10)
        np.testing.assert_array_equal(means, [1.5, 4.0, 8.0])

    def test_a_bucket_without_an_episode_has_no_mean(self):
        np.testing.assert_array_equal(
            aggregates.bucket_means([5, 35], [1.0, 2.0], 10), [1.0, NAN, NAN, 2.0]
        )
        self.assertEmpty(aggregates.bucket_means([], [], 10))

    @parameterized.parameters(
        ([1, 2], [1.0], 10, ("[2]", "[1]")),
        ([[1]], [[1.0]], 10, ("[1, 1]",)),
        ([1], [1.0], 0, ("bucket", 0)),
        ([-1], [1.0], 10, (-1,)),
    )
    def test_refused_arguments(self, steps, values, bucket, names):
        with messages.raises(ValueError, *names):
            aggregates.bucket_means(steps, values, bucket)


class SweepCurveTest(parameterized.TestCase):
    def test_medians_come_first_and_then_the_best_agent_at_each_point(self):
        curves = [
            {"a": [0.0, 1.0, 5.0], "b": [0.2, 2.0, 0.0], "c": [0.4, 9.0, 1.0]},  # 0.2, 2, 1
            {"a": [1.0, 0.0, 3.0], "b": [0.0, 0.5, 2.0], "c": [0.3, 0.6, 4.0]},  # 0.3, 0.5, 3
        ]
        np.testing.assert_allclose(aggregates.sweep_curve(curves), [0.3, 2.0, 3.0])

    def test_the_order_matters(self):
        # Each agent masters a task of its own: no agent is any good in the median.
        curves = [
            {"a": [9.0], "b": [0.0], "c": [0.0]},
            {"a": [0.0], "b": [9.0], "c": [0.0]},
            {"a": [0.0], "b": [0.0], "c": [9.0]},
        ]
        np.testing.assert_array_equal(aggregates.sweep_curve(curves), [0.0])
        best_first = np.median([max(curve[task][0] for curve in curves) for task in "abc"])
        self.assertEqual(best_first, 9.0)

    def test_averages_come_before_the_median(self):
        # Two episodes a bucket: medians of single episodes, then averaged, would give 1 instead.
        steps = [1, 2]
        curve = {
            task: aggregates.bucket_means(steps, returns, 10)
            for task, returns in {"a": [0.0, 9.0], "b": [1.0, 1.0], "c": [9.0, 0.0]}.items()
        }
        np.testing.assert_array_equal(aggregates.sweep_curve([curve]), [4.5])

    def test_groups_of_buckets_are_averaged_after_the_median_and_before_the_maximum(self):
        curves = [
            {"a": [0.0, 3.0, 1.0, 1.0], "b": [2.0, 0.0, 1.0, 1.0], "c": [1.0, 9.0, 1.0, 1.0]},
            {"a": [2.5, 1.0, 0.0, 5.0], "b": [2.5, 1.0, 0.0, 5.0], "c": [2.5, 1.0, 0.0, 5.0]},
        ]
        # Medians 1, 3, 1, 1 and 2.5, 1, 0, 5; in pairs 2, 1 and 1.75, 2.5.
        np.testing.assert_allclose(aggregates.sweep_curve(curves, group=2), [2.0, 2.5])
        # A pair that is not complete yet has no value.
        short = [{task: means[:3] for task, means in curve.items()} for curve in curves]
        np.testing.assert_allclose(aggregates.sweep_curve(short, group=2), [2.0, NAN])

    def test_an_agent_counts_where_it_has_all_its_tasks(self):
        curves = [
            {"a": [1.0, 5.0, NAN], "b": [1.0, 5.0, 5.0]},
            {"a": [2.0, NAN, NAN], "b": [2.0]},
        ]
        np.testing.assert_array_equal(aggregates.sweep_curve(curves), [2.0, 5.0, NAN])

    @parameterized.parameters(
        ([], 1, ("curves",)),
        ([{}], 1, ("curves",)),
        ([{"a": [1.0]}, {"b": [1.0]}], 1, ("a",)),
        ([{"a": [1.0]}], 0, ("group", 0)),
    )
    def test_refused_arguments(self, curves, group, names):
        with messages.raises(ValueError, *names):
            aggregates.sweep_curve(curves, group)


class ChooseBucketTest(parameterized.TestCase):
    @parameterized.parameters(
        ("atari", 200_000_000, (1_000_000, 1)),
        ("atari", 20_000_000, (1_000_000, 1)),
        ("atari", 19_999_999, (400_000, 1)),
        ("dmlab", 10_000_000_000, (10_000_000, 10)),
        ("dmlab", 1_999_999_999, (10_000_000, 1)),
        ("dmlab", 100_000_000, (2_000_000, 1)),
        ("minatar", 5_000_000, (100_000, 1)),
        ("catch", 3, (1, 1)),
    )
    def test_the_papers_where_a_run_has_20_points_else_a_fiftieth(self, suite, frames, chosen):
        self.assertEqual(aggregates.choose_bucket(suite, frames), chosen)


if __name__ == "__main__":
    absltest.main()
