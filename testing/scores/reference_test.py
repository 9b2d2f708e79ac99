"""Normalised scores against numbers computed by hand."""

import math

from absl.testing import absltest, parameterized

from laser_tf.environments import minatar
from laser_tf.scores import reference


class ReferenceTest(parameterized.TestCase):
    @parameterized.parameters(("atari", 57), ("dmlab", 32), ("minatar", 5), ("tmaze", 0))
    def test_all_tasks_of_a_suite_have_scores(self, suite, count):
        self.assertLen(reference.reference_scores(suite), count)

    @parameterized.parameters(
        ("atari", "pong", 18.0, 38.7 / 35.3),  # random -20.7, human 14.6
        ("dmlab", "rooms_collect_good_objects_train", 5.0, 4.927 / 9.927),  # random 0.073, human 10
        ("dmlab", "rooms_collect_good_objects_test", 5.0, 4.927 / 9.927),
        ("dmlab", "language_execute_random_task", 100.0, 105.913 / 259.963),
    )
    def test_score_is_normalised_by_random_and_reference(self, suite, task, score, expected):
        self.assertAlmostEqual(reference.normalised(suite, task, score), expected)

    @parameterized.parameters(("atari", "carnival"), ("dmlab", "seekavoid"), ("tmaze", "tmaze"))
    def test_unknown_task_has_no_score(self, suite, task):
        self.assertTrue(math.isnan(reference.normalised(suite, task, 100.0)))

    def test_minatar_reference_is_above_random(self):
        scores = reference.reference_scores("minatar")
        self.assertEqual(sorted(scores), sorted(minatar.GAMES))
        for random, laser in scores.values():
            self.assertGreater(laser, random)

    def test_kind_names_the_reference_of_scores(self):
        self.assertEqual(reference.kind("minatar"), "single_task")
        self.assertEqual(reference.kind("atari"), "human")
        self.assertIsNone(reference.kind("tmaze"))

    def test_missing_score_gives_no_normalised_scores(self):
        self.assertIsNone(reference.normalised_scores("minatar", {"breakout": float("nan")}))

    def test_dopamine_has_all_agents_of_all_atari_games_but_two(self):
        curves = reference.dopamine_curves()
        missing = set(reference.reference_scores("atari")) - set(curves["game"])
        self.assertEqual(missing, {"defender", "surround"})
        table = curves.pivot(index=["game", "agent"], columns="env_frames", values="value")
        self.assertEqual([frames / 1e6 for frames in table.columns], [4, 10, 20, 50])
        self.assertEqual(table.shape[0], 55 * len(reference.DOPAMINE_AGENTS))
        self.assertFalse(table.isna().any(axis=None))

    def test_dopamine_column_is_the_million_frames_that_end_there(self):
        # Pong's fourth iteration, frames 3 to 4 million: the mean of IQN's five published seeds.
        seeds = (-5.703125, -0.6, 1.46875, -2.92857, -1.06154)
        curves = reference.dopamine_curves().set_index(["game", "agent", "env_frames"])["value"]
        published = curves["pong", "IQN", 4_000_000]
        self.assertAlmostEqual(published, sum(seeds) / reference.DOPAMINE_SEEDS, places=2)


if __name__ == "__main__":
    absltest.main()
