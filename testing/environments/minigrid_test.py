"""The MiniGrid adapter over a stand-in for the package."""

import sys
from unittest import mock

import gymnasium
import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import instructions, minigrid
from testing import messages
from testing.environments import fake_minigrid, rollouts

FORWARD = fake_minigrid.FORWARD
LOCAL = "BabyAI-GoToLocal-v0"


def make(task=LOCAL, **options):
    return rollouts.make("minigrid", task, **options)


class MiniGridTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(fake_minigrid.installed())

    def test_plays_the_games_of_their_own_seeds(self):
        with make(seed=3, num_envs=2) as environment:
            actions = rollouts.random_actions(environment, 200)
            rows = rollouts.play(environment, actions)
        game = gymnasium.make(LOCAL, disable_env_checker=True).unwrapped
        seen, _ = game.reset(seed=4)  # that of the second game
        over, reward, terminated = False, 0, False
        for step in range(201):
            if step:
                was_over = over
                if was_over:
                    seen, _ = game.reset()
                    over, reward, terminated = False, 0, False
                else:
                    seen, reward, terminated, truncated, _ = game.step(actions[step - 1, 1])
                    over = terminated or truncated
                self.assertEqual(rows.is_first[step, 1], was_over)
            self.assertEqual(rows.reward[step, 1], np.float32(reward))
            self.assertEqual(rows.discount[step, 1], 1 - terminated)
            codes = seen["image"].astype(int) * [20, 40, 80]
            np.testing.assert_array_equal(rows.observation["image"][step, 1], codes)
            np.testing.assert_array_equal(
                rows.observation["text"][step, 1], instructions.encode(seen["mission"], 16)
            )

    def test_no_code_overflows(self):
        # The real package's largest: object 10, colour 5, state 3 (an agent's direction).
        self.assertLessEqual(max(np.multiply(minigrid.CODE_SCALES, (10, 5, 3))), 255)

    def test_missions_change_with_the_episode_only(self):
        with make(num_envs=1) as environment:
            rows = rollouts.play(environment, np.full([100, 1], FORWARD))
        starts = np.flatnonzero(rows.is_first[:, 0])
        np.testing.assert_array_equal(starts, np.arange(0, 101, 5))
        missions = rows.observation["text"][starts, 0]
        np.testing.assert_array_equal(rows.observation["text"][:, 0], missions.repeat(5, 0)[:101])
        self.assertLen({mission.tobytes() for mission in missions}, 6)

    @parameterized.parameters(({}, 64), ({"max_frames_per_episode": 7}, 7))
    def test_time_limits_keep_the_discount(self, options, limit):
        with make(**options) as environment:
            rows = rollouts.play(environment, np.zeros([2 * limit + 2, 2], int))
        np.testing.assert_array_equal(rows.discount, 1)
        np.testing.assert_array_equal(
            np.flatnonzero(rows.is_first[:, 0]), [0, limit + 1, 2 * limit + 2]
        )

    def test_a_goal_at_the_time_limit_is_a_goal(self):
        with make(max_frames_per_episode=fake_minigrid.CELLS) as environment:
            rows = rollouts.play(environment, np.full([fake_minigrid.CELLS, 2], FORWARD))
        np.testing.assert_array_equal(rows.discount[-1], 0)
        np.testing.assert_allclose(rows.reward[-1], 1 - 0.9 * 4 / 64)

    def test_a_mission_that_is_too_long_fails_before_training(self):
        with messages.raises(ValueError, 10, "instruction_length=10"):
            with make("BabyAI-GoToSeq-v0", instruction_length=9):
                pass
        with make("BabyAI-GoToSeq-v0", instruction_length=10) as environment:
            self.assertTrue(environment.reset().observation["text"].all())

    def test_construction_does_not_use_up_the_streams(self):
        with make(seed=5, num_envs=1) as environment:
            observation = environment.reset().observation["image"][0]
        game = gymnasium.make(LOCAL, disable_env_checker=True).unwrapped
        expected, _ = game.reset(seed=5)
        np.testing.assert_array_equal(observation, expected["image"] * np.uint8([20, 40, 80]))

    @parameterized.parameters(
        ("BabyAI-GoToLocl-v0", ("BabyAI-GoToLocl-v0", "BabyAI-GoToLocal-v0")),
        ("CartPole-v1", ("CartPole-v1",)),
    )
    def test_unknown_tasks(self, task, named):
        with messages.raises(ValueError, *named):
            minigrid.MiniGridConfig(task=task)

    def test_a_picture_is_the_games_own(self):
        with make() as environment:
            environment.reset()
            environment.step(np.array([0, FORWARD]))
            self.assertEqual((environment.render(0) == 0).all(), True)
            picture = environment.render(1)
        self.assertEqual((picture.dtype, picture.shape), (np.uint8, (160, 160, 3)))
        np.testing.assert_array_equal(picture, 50)

    def test_close_closes_the_games(self):
        with make() as environment:
            games = environment._games
        self.assertTrue(all(game.closed for game in games))


class MissingPackageTest(absltest.TestCase):
    def test_the_message_names_the_remedy(self):
        with mock.patch.dict(sys.modules, {"minigrid": None}):
            with messages.raises(ImportError, "MiniGrid", "make minigrid"):
                with make():
                    pass


if __name__ == "__main__":
    absltest.main()
