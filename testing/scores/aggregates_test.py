"""Aggregates over tasks and means of episodes against numbers by hand."""

import numpy as np
import pandas as pd
from absl.testing import absltest, parameterized

from laser_tf.scores import aggregates

NAN = np.nan
STEPS, VALUES = np.array([10, 10, 20, 40]), np.array([1.0, 3.0, 8.0, 10.0])


class AggregatesTest(parameterized.TestCase):
    def test_median_is_the_middle_or_the_mean_of_the_middle_two(self):
        scores = {"pong": 1.5, "breakout": 9.0, "pitfall": 0.0}
        self.assertEqual(aggregates.median_normalised(scores), 1.5)
        self.assertEqual(aggregates.median_normalised({**scores, "zaxxon": 0.5}), 1.0)

    def test_mean_is_capped_for_each_task_and_not_from_below(self):
        scores = {"rooms_watermaze": 3.0, "psychlab_visual_search": 0.5, "natlab": -0.5}
        self.assertAlmostEqual(aggregates.mean_capped_normalised(scores), (1 + 0.5 - 0.5) / 3)

    @parameterized.parameters(
        (2, [NAN, 2.0, 2.0, 5.5, 9.0, 9.0]),
        (100, [NAN, 2.0, 2.0, 4.0, 5.5, 5.5]),  # fewer, as long as there are no more
    )
    def test_trailing_means_are_of_the_last_episodes(self, count, expected):
        at = np.array([9, 10, 19.9, 20, 40, 99])
        means = aggregates.trailing_means(STEPS, VALUES, at, count)
        np.testing.assert_array_equal(means, expected)

    @parameterized.parameters(
        (20, [NAN, 2.0, 2.0, 4.0, 8.0, 10.0, 10.0]),  # the window of 30 begins after 10
        (1, [NAN, 2.0, NAN, 8.0, NAN, 10.0, NAN]),
    )
    def test_window_means_are_of_the_last_frames(self, window, expected):
        at = np.array([9, 10, 19, 20, 30, 40, 50])
        means = aggregates.window_means(STEPS, VALUES, at, window)
        np.testing.assert_array_equal(means, expected)


class SweepTest(parameterized.TestCase):
    def _curves(self, members, group=1, bucket=10, more_tasks=()):
        """Returns member -> scores; `members` has (env frames, score) of each task."""
        rows = [
            (member, task, frames, score)
            for member, tasks in members.items()
            for task, episodes in tasks.items()
            for frames, score in episodes
        ]
        episodes = pd.DataFrame(rows, columns=["member", "task", "env_frames", "score"])
        tasks = sorted({"a", *episodes["task"], *more_tasks})
        table = aggregates.sweep_curves(episodes, tasks, bucket, group)
        return table.pivot(index="member", columns="env_frames", values="score")

    def test_bucket_holds_its_first_frame_and_not_its_last(self):
        curve = self._curves({"m": {"a": [(0, 1.0), (25, 7.0), (9, 3.0), (10, 10.0)]}})
        self.assertEqual(curve.loc["m"].to_dict(), {5.0: 2.0, 15.0: 10.0, 25.0: 7.0})

    def test_averages_come_before_the_median(self):
        # Medians of single episodes, then averaged, would give 1 instead.
        tasks = {"a": [(1, 0.0), (2, 9.0)], "b": [(1, 1.0), (2, 1.0)], "c": [(1, 9.0), (2, 0.0)]}
        self.assertEqual(self._curves({"m": tasks}).loc["m", 5.0], 4.5)

    def test_members_are_not_mixed_and_need_all_tasks(self):
        # Each member masters another task: the median of none of them is good.
        members = {
            "m": {"a": [(0, 9.0)], "b": [(0, 0.0)], "c": [(0, 0.0), (10, 1.0)]},
            "n": {"a": [(0, 0.0)], "b": [(0, 9.0)], "c": [(0, 0.5)]},
        }
        curves = self._curves(members)
        self.assertEqual(list(curves[5.0]), [0.0, 0.5])
        self.assertTrue(np.isnan(curves.loc["m", 15.0]))

    def test_task_without_any_episode_is_missed(self):
        curve = self._curves({"m": {"a": [(0, 9.0)]}}, more_tasks=("b",)).loc["m"]
        np.testing.assert_array_equal(curve, [NAN])

    def test_groups_of_buckets_are_averaged_after_the_median(self):
        scores = {"a": (0.0, 3.0, 1.0), "b": (2.0, 0.0, 1.0), "c": (1.0, 9.0, 1.0)}
        tasks = {task: [(10 * k, s) for k, s in enumerate(row)] for task, row in scores.items()}
        curve = self._curves({"m": tasks}, group=2).loc["m"]
        # Medians 1, 3 and 1; the second pair is not complete.
        np.testing.assert_array_equal(curve, [2.0, NAN])
        self.assertEqual(list(curve.index), [10.0, 30.0])

    @parameterized.parameters(
        ("atari", 200_000_000, (1_000_000, 1)),
        ("atari", 19_999_999, (400_000, 1)),
        ("dmlab", 10_000_000_000, (10_000_000, 10)),
        ("dmlab", 1_999_999_999, (10_000_000, 1)),
        ("dmlab", 100_000_000, (2_000_000, 1)),
        ("catch", 3, (1, 1)),
    )
    def test_bucket_is_the_papers_or_a_fiftieth(self, suite, env_frames, expected):
        self.assertEqual(aggregates.choose_bucket(suite, env_frames), expected)


if __name__ == "__main__":
    absltest.main()
