"""Shares of episodes and episodes without end."""

from unittest import mock

import numpy as np
from absl.testing import absltest

from laser_tf.environments import episode_statistics, faults
from laser_tf.evaluation import episode_player
from testing.environments import counting_environments


def _play(episodes, *lengths, max_steps_per_episode=0):
    environment = counting_environments.CountingEnvironments(*lengths)
    player = episode_player.EpisodePlayer(
        environment, lambda _: np.zeros(len(lengths), int), max_steps_per_episode
    )
    return [game.length for game in player.play(episodes)]


@mock.patch.object(episode_statistics, "MIN_LENGTH_LIMIT", 5)
class LengthLimitTest(absltest.TestCase):
    def test_episode_without_end_raises(self):
        with self.assertRaises(faults.EnvironmentFailedError) as caught:
            _play(2, [2], [0])
        for part in ("counting", "5", "environment.max_frames_per_episode"):
            self.assertIn(part, str(caught.exception))

    def test_late_episode_without_end_raises(self):
        with self.assertRaises(faults.EnvironmentFailedError):
            _play(4, [2], [2, 0])

    def test_episode_of_the_limit_is_counted(self):
        self.assertEqual(_play(2, [5]), [5, 5])

    def test_environment_past_its_share_may_continue(self):
        self.assertCountEqual(_play(4, [5], [1, 1, 0]), [5, 5, 1, 1])

    def test_known_longer_limit_applies(self):
        self.assertEqual(_play(1, [8], max_steps_per_episode=8), [8])


if __name__ == "__main__":
    absltest.main()
