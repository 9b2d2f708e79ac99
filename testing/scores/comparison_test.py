"""Estimates over games and seeds against numbers worked out by hand."""

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.scores import comparison

# Two seeds of four games.
SCORES = np.array([[0.0, 1.0, 2.0, 8.0], [2.0, 1.0, 4.0, 10.0]])


class ComparisonTest(parameterized.TestCase):
    def test_estimates_average_seeds_before_games(self):
        # Means of the seeds: 1, 1, 3 and 9.
        self.assertEqual(comparison.median(SCORES).value, 2.0)
        self.assertEqual(comparison.median(np.array([[0.0, 1.0], [8.0, 3.0]])).value, 3.0)
        self.assertEqual(comparison.mean(SCORES).value, 3.5)
        # The middle four of 0, 1, 1, 2, 2, 4, 8 and 10.
        self.assertEqual(comparison.interquartile_mean(SCORES).value, (1 + 2 + 2 + 4) / 4)

    def test_repeated_seeds_leave_the_interquartile_mean_unchanged(self):
        # 1.5 of 6 scores are left out at each end: half of 1 and half of 8.
        scores = np.array([[0.0, 1.0, 2.0, 4.0, 8.0, 90.0]])
        expected = (0.5 * 1 + 2 + 4 + 0.5 * 8) / 3
        for seeds in (1, 2, 3, 4):
            found = comparison.interquartile_mean(np.tile(scores, [seeds, 1]))
            self.assertAlmostEqual(found.value, expected)

    def test_probability_of_improvement_counts_pairs_of_seeds(self):
        others = np.array([[1.0, 1.0, 5.0, 9.0], [1.0, 0.0, 5.0, 7.0], [-1.0, 0.0, 3.0, 0.0]])
        # Pairs won, of six: 4; 4 and two ties; 1; 5.
        expected = (4 / 6 + 5 / 6 + 1 / 6 + 5 / 6) / 4
        found = comparison.probability_of_improvement(SCORES, others)
        self.assertAlmostEqual(found.value, expected)
        reverse = comparison.probability_of_improvement(others, SCORES)
        self.assertAlmostEqual(reverse.value, 1 - expected)

    def test_intervals_resample_each_games_seeds_by_themselves(self):
        # The second game is always 1, each other one at its lower seed, at its upper seed or
        # between with odds 1 : 1 : 2. So the mean is 2.75 in one of 64 resamples, below 2.5%.
        found = comparison.mean(SCORES)
        self.assertEqual((found.low, found.high), (3.0, 4.0))
        together = SCORES.mean(axis=1)  # whole seeds, resampled, would give 2.75 and 4.25
        self.assertSequenceEqual(list(together), [2.75, 4.25])

    @parameterized.parameters(comparison.median, comparison.mean, comparison.interquartile_mean)
    def test_one_seed_has_no_interval(self, measure):
        found = measure(SCORES[:1])
        self.assertTrue(np.isfinite(found.value))
        self.assertTrue(np.isnan([found.low, found.high]).all())

    def test_same_scores_give_the_same_interval(self):
        self.assertEqual(comparison.median(SCORES), comparison.median(SCORES))
        self.assertEqual(comparison.mean(np.ones([3, 2])), comparison.Estimate(1.0, 1.0, 1.0))


if __name__ == "__main__":
    absltest.main()
