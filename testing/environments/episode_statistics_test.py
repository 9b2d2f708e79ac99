"""Tests of returns and lengths of episodes."""

from unittest import mock

import numpy as np
from absl.testing import absltest

from laser_tf import types
from laser_tf.environments import episode_statistics


def row(reward, is_first):
    reward = np.array(reward, np.float32)
    return types.EnvOutput(None, reward, np.ones_like(reward), np.array(is_first), None)


def _environment(task_ids, reward_scales):
    return mock.Mock(
        num_envs=len(task_ids),
        task_ids=np.array(task_ids),
        reward_scales=np.array(reward_scales, np.float32),
    )


class EpisodeTrackerTest(absltest.TestCase):
    def test_finished_episodes_have_return_and_length(self):
        tracker = episode_statistics.EpisodeTracker(_environment([0, 1], [1.0, 10.0]))
        self.assertEmpty(tracker.update(row([0, 0], [True, True])))
        self.assertEmpty(tracker.update(row([1, 10], [False, False])))
        self.assertEmpty(tracker.update(row([2.5, -4], [False, False])))
        self.assertEqual(tracker.update(row([0, 1], [True, False])), [(0, 0, 0, 3.5, 2)])
        self.assertEqual(tracker.update(row([7, 0], [False, True])), [(1, 1, 0, 0.7, 3)])
        self.assertEqual(tracker.update(row([0, 0], [True, False])), [(0, 0, 3, 7.0, 1)])


if __name__ == "__main__":
    absltest.main()
