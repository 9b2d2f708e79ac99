"""Shares of episodes, episodes without end, and statistics of returns."""

from unittest import mock

import numpy as np
from absl.testing import absltest

from laser_tf.environments import episode_statistics, faults
from laser_tf.evaluation import episode_runner
from testing import fakes, messages
from testing.environments import counting_environments


def _lengths(episodes, *lengths, max_steps_per_episode=0):
    environment = counting_environments.CountingEnvironments(*lengths)
    actions = np.zeros(len(lengths), int)
    finished, _ = episode_runner.run_episodes(
        environment, lambda _: actions, episodes, max_steps_per_episode
    )
    return [episode.length for episode in finished]


@mock.patch.object(episode_statistics, "MIN_LENGTH_LIMIT", 5)
class LengthLimitTest(absltest.TestCase):
    def test_episode_without_end_raises(self):
        for lengths in (([2], [0]), ([2], [2, 0])):
            with messages.raises(
                faults.EnvironmentFailedError,
                "counting", 5, "environment.max_frames_per_episode",
            ):  # fmt: skip
                _lengths(4, *lengths)

    def test_episode_of_the_limit_is_counted(self):
        self.assertEqual(_lengths(2, [5]), [5, 5])

    def test_environment_past_its_share_may_continue(self):
        self.assertCountEqual(_lengths(4, [5], [1, 1, 0]), [5, 5, 1, 1])

    def test_known_longer_limit_applies(self):
        self.assertEqual(_lengths(1, [8], max_steps_per_episode=8), [8])


class SummaryTest(absltest.TestCase):
    def test_summary_covers_each_task_and_all_episodes(self):
        config = fakes.catch_config(environment={"suite": "minatar", "task": "breakout,asterix"})
        episodes = [
            episode_runner.Episode(0, task, 0, value, 9)
            for task, value in ((1, 10.0), (1, 20.0), (0, 1.0), (0, 3.0))
        ]
        summary = episode_runner.summarise_returns(config.environment, episodes)
        self.assertEqual(summary["tasks"]["breakout"]["returns"], [1.0, 3.0])
        self.assertEqual(summary["tasks"]["breakout"]["standard_deviation"], 1.0)
        self.assertEqual(summary["tasks"]["asterix"]["returns"], [10.0, 20.0])
        self.assertEqual(summary["mean_return"], 8.5)
        self.assertEqual(summary["median_return"], 6.5)
        self.assertEqual((summary["min_return"], summary["max_return"]), (1.0, 20.0))
        # Of 1, 3, 10 and 20, the mean square is 127.5 and the mean 8.5.
        self.assertAlmostEqual(summary["standard_deviation"], (127.5 - 8.5**2) ** 0.5)
        self.assertEqual(summary["episodes"], 4)


if __name__ == "__main__":
    absltest.main()
