"""Dopamine's published returns: which games, and what a column is."""

from absl.testing import absltest

from laser_tf.scores import dopamine, reference


class DopamineTest(absltest.TestCase):
    def test_all_games_with_references_but_two_are_there(self):
        missing = set(reference.reference_scores("atari")) - set(dopamine.curves())
        self.assertEqual(missing, {"defender", "surround"})
        self.assertLen(dopamine.curves(), 55)

    def test_each_game_has_all_agents_at_all_frames(self):
        for game, agents in dopamine.curves().items():
            self.assertEqual(tuple(agents), dopamine.AGENTS, game)
            for points in agents.values():
                self.assertEqual([frames / 1e6 for frames in points], [1, 4, 10, 20, 50], game)

    def test_pong_by_hand(self):
        # Pong's fourth iteration, frames 3 to 4 million: the mean of IQN's five published seeds.
        seeds = (-5.703125, -0.6, 1.46875, -2.92857, -1.06154)
        self.assertAlmostEqual(
            dopamine.curves()["pong"]["IQN"][4_000_000], sum(seeds) / dopamine.SEEDS, places=2
        )


if __name__ == "__main__":
    absltest.main()
