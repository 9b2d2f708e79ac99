"""Tests of several tasks in one batch: order, scaled rewards, different specs."""

import numpy as np
from absl.testing import absltest

from laser_tf.environments import atari, factory
from testing import messages
from testing.environments import rollouts

GAMES = "asterix,breakout,freeway,seaquest,space_invaders"
MINATAR = {"suite": "minatar", "sticky_actions": 0.1, "max_frames_per_episode": 60}


class MultiTaskTest(absltest.TestCase):
    def test_environments_are_in_the_order_of_tasks(self):
        with rollouts.make(task=GAMES, num_envs=2, seed=5, **MINATAR) as environment:
            self.assertEqual(environment.num_envs, 10)
            self.assertEqual(environment.tasks, tuple(GAMES.split(",")))
            np.testing.assert_array_equal(environment.task_ids, np.repeat(np.arange(5), 2))
            self.assertEqual(environment.spec().num_tasks, 5)
            actions = rollouts.random_actions(environment, 100)
            outputs = rollouts.run(environment, actions)
        self.assertEqual(outputs.observation.shape, (101, 10, 10, 10, 10))
        for index, task in enumerate(GAMES.split(",")):
            environments = slice(2 * index, 2 * index + 2)
            with rollouts.make(task=task, num_envs=2, seed=5 + 2 * index, **MINATAR) as alone:
                expected = rollouts.run(alone, actions[:, environments])
            channels = expected.observation.shape[-1]
            boards = outputs.observation[:, environments]
            np.testing.assert_array_equal(boards[..., :channels], expected.observation)
            self.assertFalse(boards[..., channels:].any())
            for name in ("reward", "discount", "is_first", "previous_action"):
                np.testing.assert_array_equal(
                    getattr(outputs, name)[:, environments], getattr(expected, name), name
                )

    def test_rewards_are_scaled_and_images_unchanged(self):
        options = {"task": "breakout,asterix", "num_envs": 2, **MINATAR}
        scales = (10.0, 0.5)
        with (
            rollouts.make(**options) as plain,
            rollouts.make(**options, reward_scales=scales) as scaled,
        ):
            np.testing.assert_array_equal(scaled.reward_scales, [10, 10, 0.5, 0.5])
            actions = rollouts.random_actions(plain, 500)
            expected, actual = (rollouts.run(env, actions) for env in (plain, scaled))
            for index in range(4):
                np.testing.assert_array_equal(plain.render(index), scaled.render(index))
        self.assertTrue(expected.reward[:, :2].any() and expected.reward[:, 2:].any())
        np.testing.assert_array_equal(actual.reward, expected.reward * scaled.reward_scales)

    def test_tasks_with_different_specs_are_named(self):
        config = atari.AtariConfig(task="pong,breakout,seaquest", num_envs=1)
        with messages.raises(ValueError, "pong", "breakout", 4, 6):
            factory.make_environment(config, seed=0)

    def test_atari_games_share_the_full_action_set(self):
        with rollouts.make("atari", "pong,breakout", num_envs=1, full_action_space=True) as both:
            self.assertEqual(both.action_spec().num_values, 18)
            self.assertEqual(both.reset().observation.shape, (2, atari.HEIGHT, atari.WIDTH, 1))


if __name__ == "__main__":
    absltest.main()
