"""Tests of the suite vizdoom with a stand-in for the package."""

import pathlib
import sys
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import vizdoom
from testing.environments import fake_packages, rollouts
from testing.environments.fake_packages import vizdoom as fake_vizdoom


class VizDoomTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(fake_packages.installed())
        self.enter_context(mock.patch.dict(sys.modules, {"vizdoom": fake_vizdoom}))
        self.addCleanup(lambda: self.assertEmpty(fake_vizdoom.running_games))

    def _make(self, task, action_repeat=4, seed=0):
        environment = vizdoom.Doom(task, action_repeat, seed)
        self.addCleanup(environment.close)
        return environment, fake_vizdoom.running_games[-1]

    @parameterized.parameters(*fake_vizdoom.SCENARIOS)
    def test_actions_press_nothing_each_button_alone_and_curves(self, task):
        buttons = fake_vizdoom.SCENARIOS[task][0].split()
        environment, engine = self._make(task)
        environment.reset()
        for action in range(environment.action_spec().num_values):
            environment.step(action)
        pressed = [
            {name for name, state in zip(buttons, states, strict=True) if state}
            for states, _ in engine.pressed
        ]
        expected = [set(), *({button} for button in buttons)]
        if {"MOVE_FORWARD", "TURN_LEFT", "TURN_RIGHT"} <= set(buttons):
            expected += [{"MOVE_FORWARD", "TURN_LEFT"}, {"MOVE_FORWARD", "TURN_RIGHT"}]
        self.assertCountEqual(pressed, expected)
        self.assertEqual(pressed, [set(held) for held in vizdoom.ACTIONS[task]])

    def test_environments_have_own_seeds(self):
        with rollouts.make("vizdoom", "health_gathering", seed=3, num_envs=2) as environment:
            outputs = rollouts.run(environment, np.zeros([200, 2], np.int32))
        alone, _ = self._make("health_gathering", seed=4)  # Seed of the second environment.
        is_over = True
        for step in range(201):
            time_step = alone.reset() if is_over else alone.step(0)
            self.assertEqual(outputs.is_first[step, 1], time_step.first())
            if not time_step.first():
                self.assertEqual(outputs.reward[step, 1], np.float32(time_step.reward))
                self.assertEqual(outputs.discount[step, 1], time_step.discount)
            np.testing.assert_array_equal(outputs.observation[step, 1], time_step.observation)
            is_over = time_step.last()
        self.assertGreater(outputs.is_first.sum(), 3)

    @parameterized.parameters(
        ("basic", 4, 75),  # 300 frames
        ("basic", 1, 300),
        ("my_way_home", 4, 525),  # 2,100 frames
    )
    def test_timeout_keeps_the_discount_and_has_a_last_frame(self, task, action_repeat, limit):
        environment, _ = self._make(task, action_repeat)
        environment.reset()
        steps = [environment.step(0) for _ in range(limit)]
        self.assertFalse(any(step.last() for step in steps[:-1]))
        self.assertTrue(steps[-1].last())
        self.assertEqual(steps[-1].discount, 1)
        self.assertFalse(np.array_equal(steps[-1].observation, steps[-2].observation))

    def test_death_has_discount_0_and_repeats_the_last_frame(self):
        environment, _ = self._make("deadly_corridor")
        steps = [environment.reset()]
        while not steps[-1].last():
            steps.append(environment.step(0))
        self.assertEqual((steps[-1].reward, steps[-1].discount), (-100, 0))
        np.testing.assert_array_equal(steps[-1].observation, steps[-2].observation)

    def test_observation_is_the_shrunk_screen(self):
        environment, engine = self._make("take_cover")
        environment.reset()
        time_step = environment.step(1)
        screen = engine.get_state().screen_buffer
        np.testing.assert_array_equal(environment.render(), screen)
        # Each of 72x96 pixels is the mean of 5/3 x 5/3 pixels of 120x160.
        fine = screen.astype(float).repeat(3, 0).repeat(3, 1)
        means = fine.reshape(72, 5, 96, 5, 3).mean((1, 3))
        np.testing.assert_allclose(time_step.observation, means, atol=0.51)

    def test_engines_have_no_window_and_separate_files(self):
        engines = [self._make("basic", seed=seed) for seed in (5, 6)]
        settings = [engine.settings for _, engine in engines]
        self.assertEqual([one["seed"] for one in settings], [5, 6])
        self.assertLen({one["config_path"] for one in settings}, 2)
        for environment, engine in engines:
            environment.close()
            self.assertFalse(pathlib.Path(engine.settings["config_path"]).parent.exists())


if __name__ == "__main__":
    absltest.main()
