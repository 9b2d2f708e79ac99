"""Human-normalised scores against numbers worked out by hand."""

from absl.testing import absltest

from laser_tf.scores import atari57, reference


class Atari57Test(absltest.TestCase):
    def test_all_games_are_there(self):
        self.assertLen(atari57.reference_scores(), 57)

    def test_zero_is_random_play_and_one_the_human(self):
        for game, (random_score, human_score) in atari57.reference_scores().items():
            self.assertAlmostEqual(reference.normalised("atari", game, random_score), 0.0)
            self.assertAlmostEqual(reference.normalised("atari", game, human_score), 1.0)

    def test_pong_by_hand(self):
        # random -20.7, human 14.6: (18 + 20.7) / 35.3
        self.assertAlmostEqual(reference.normalised("atari", "pong", 18.0), 38.7 / 35.3)

    def test_an_unknown_game_has_none(self):
        self.assertIsNone(reference.normalised("atari", "carnival", 100.0))


if __name__ == "__main__":
    absltest.main()
