"""The ViZDoom adapter over a stand-in for the package."""

import pathlib
import signal
import sys
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import vizdoom
from testing import messages
from testing.environments import fake_vizdoom, rollouts


def make(task="take_cover", **options):
    return rollouts.make("vizdoom", task, **options)


class VizDoomTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(fake_vizdoom.installed())
        self.addCleanup(lambda: self.assertEmpty(fake_vizdoom.running_games))

    @parameterized.parameters(*fake_vizdoom.SCENARIOS)
    def test_actions_press_nothing_each_button_alone_and_curves(self, task):
        buttons = fake_vizdoom.SCENARIOS[task][0].split()
        with make(task, num_envs=1) as environment:
            num_actions = environment.action_spec().num_values
            (game,) = fake_vizdoom.running_games
            environment.reset()
            for action in range(num_actions):
                environment.step(np.array([action]))
            pressed = [
                {name for name, state in zip(buttons, states, strict=True) if state}
                for states, _ in game.pressed
            ]
        self.assertLen(pressed, num_actions)
        expected = [set(), *({button} for button in buttons)]
        if {"MOVE_FORWARD", "TURN_LEFT", "TURN_RIGHT"} <= set(buttons):
            expected += [{"MOVE_FORWARD", "TURN_LEFT"}, {"MOVE_FORWARD", "TURN_RIGHT"}]
        self.assertCountEqual(pressed, expected)
        self.assertEqual(pressed, [set(held) for held in vizdoom.ACTIONS[task]])

    def test_plays_the_games_of_their_own_seeds(self):
        with make("health_gathering", seed=3, num_envs=2, num_threads=2) as environment:
            actions = rollouts.random_actions(environment, 200)
            rows = rollouts.play(environment, actions)
        game = fake_vizdoom.DoomGame()
        game.load_config("health_gathering.cfg")
        game.set_seed(4)  # that of the second game
        game.init()
        game.new_episode()  # the episode that the engine starts by itself is not played
        rewards, ends, over = [0], [False], False
        for _ in actions:
            if over:
                game.new_episode()
                rewards.append(0)
                over = False
            else:
                rewards.append(game.make_action([0, 0, 0], 4))
                over = game.is_episode_finished()
            ends.append(over)
        game.close()
        self.assertGreater(sum(ends), 3)
        np.testing.assert_array_equal(rows.reward[:, 1], np.float32(rewards))
        np.testing.assert_array_equal(rows.discount[:, 1], 1 - np.array(ends))
        np.testing.assert_array_equal(rows.is_first[1:, 1], ends[:-1])

    @parameterized.parameters(
        ("basic", {}, 75),  # 300 frames
        ("my_way_home", {}, 525),  # 2,100 frames
        ("my_way_home", {"max_frames_per_episode": 402}, 101),
        ("basic", {"max_frames_per_episode": 402}, 75),
        ("basic", {"action_repeat": 1}, 300),
    )
    def test_timeouts_keep_the_discount_and_have_a_last_frame(self, task, options, limit):
        with make(task, num_envs=1, **options) as environment:
            rows = rollouts.play(environment, np.zeros([2 * limit + 2, 1], int))
        np.testing.assert_array_equal(rows.discount, 1)
        np.testing.assert_array_equal(
            np.flatnonzero(rows.is_first[:, 0]), [0, limit + 1, 2 * limit + 2]
        )
        self.assertFalse(np.array_equal(rows.observation[limit], rows.observation[limit - 1]))

    def test_death_has_discount_0_and_repeats_the_last_frame(self):
        with make("deadly_corridor", num_envs=1) as environment:
            rows = rollouts.play(environment, np.zeros([60, 1], int))
        (death, *_) = np.flatnonzero(rows.discount[:, 0] == 0)
        self.assertEqual(rows.reward[death, 0], -100)
        self.assertTrue(rows.is_first[death + 1, 0])
        np.testing.assert_array_equal(rows.observation[death], rows.observation[death - 1])

    def test_frames_are_the_screens_made_smaller(self):
        with make(num_envs=2) as environment:
            games = sorted(fake_vizdoom.running_games, key=lambda game: game.settings["seed"])
            for take in (environment.reset, lambda: environment.step(np.array([1, 2]))):
                row = take()
                for index, game in enumerate(games):
                    screen = game.get_state().screen_buffer
                    picture = environment.render(index)
                    np.testing.assert_array_equal(picture, screen)
                    # Each of 72x96 pixels is the mean of 5/3 x 5/3 pixels of 120x160.
                    fine = screen.astype(float).repeat(3, 0).repeat(3, 1)
                    means = fine.reshape(72, 5, 96, 5, 3).mean((1, 3))
                    np.testing.assert_allclose(row.observation[index], means, atol=0.51)
                    picture[:] = 0  # a picture is the caller's
                    np.testing.assert_array_equal(environment.render(index), screen)

    def test_engines_are_silent_invisible_and_keep_their_files_apart(self):
        with make(num_envs=3, seed=5) as environment:
            settings = [game.settings for game in fake_vizdoom.running_games]
            folders = {pathlib.Path(one["config_path"]).parent for one in settings}
            environment.reset()
        self.assertCountEqual([one["seed"] for one in settings], [5, 6, 7])
        self.assertLen({one["config_path"] for one in settings}, 3)
        for one in settings:
            self.assertEqual((one["window"], one["sound"]), (False, False))
            self.assertIs(one["format"], fake_vizdoom.ScreenFormat.RGB24)
            self.assertIs(one["resolution"], fake_vizdoom.ScreenResolution.RES_160X120)
        self.assertFalse(any(folder.exists() for folder in folders))

    def test_engines_start_deaf_to_an_interrupt_and_this_process_hears_it(self):
        masks = []
        start = fake_vizdoom.DoomGame.init

        def init(game):
            masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
            start(game)

        with mock.patch.object(fake_vizdoom.DoomGame, "init", init):
            with make(num_envs=2) as environment:
                after = environment._pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, [])
                self.assertNotIn(signal.SIGINT, after.result())
        self.assertLen(masks, 2)
        for mask in masks:
            self.assertContainsSubset({signal.SIGINT, signal.SIGHUP}, mask)

    def test_close_ends_the_engines(self):
        with make(num_envs=3):
            self.assertLen(fake_vizdoom.running_games, 3)
        self.assertEmpty(fake_vizdoom.running_games)

    def test_unknown_scenarios(self):
        with messages.raises(ValueError, "deadly_coridor", "deadly_corridor"):
            vizdoom.VizDoomConfig(task="deadly_coridor")


class MissingPackageTest(absltest.TestCase):
    def test_the_message_names_the_remedy(self):
        with mock.patch.dict(sys.modules, {"vizdoom": None}):
            with messages.raises(ImportError, "ViZDoom", "make vizdoom"):
                with make():
                    pass


if __name__ == "__main__":
    absltest.main()
