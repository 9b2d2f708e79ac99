"""MinAtar's own reference: single-task LASER, since there is no human's."""

from absl.testing import absltest

from laser_tf.environments import minatar as games
from laser_tf.scores import minatar, reference


class MinAtarTest(absltest.TestCase):
    def test_all_games_have_a_reference_above_random_play(self):
        self.assertEqual(sorted(minatar.reference_scores()), sorted(games.GAMES))
        for random_score, laser_score in minatar.reference_scores().values():
            self.assertGreater(laser_score, random_score)

    def test_zero_is_random_play_and_one_the_single_task_agent(self):
        for game, (random_score, laser_score) in minatar.reference_scores().items():
            self.assertAlmostEqual(reference.normalised("minatar", game, random_score), 0.0)
            self.assertAlmostEqual(reference.normalised("minatar", game, laser_score), 1.0)

    def test_whose_score_is_one(self):
        self.assertEqual(reference.kind("minatar"), "single_task")
        self.assertEqual(reference.kind("atari"), "human")
        self.assertIsNone(reference.kind("tmaze"))
        self.assertIsNone(reference.normalised("tmaze", "tmaze", 1.0))
        self.assertIsNone(reference.normalised_scores("minatar", {"breakout": float("nan")}))


if __name__ == "__main__":
    absltest.main()
