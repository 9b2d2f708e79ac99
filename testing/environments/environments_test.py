"""All suites keep the time convention; what is particular to each has a test of its own."""

import dataclasses

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import atari, factory

CATCH = factory.EnvironmentConfig(suite="catch", task="catch", num_envs=3, action_repeat=1)
MINATAR = factory.EnvironmentConfig(
    suite="minatar", task="breakout", num_envs=3, action_repeat=1, sticky_actions=0.1
)
# Cut after 400 frames, so that a test sees episodes end; pong's own end takes minutes.
PONG = factory.EnvironmentConfig(task="pong", num_envs=3, max_frames_per_episode=400)
BREAKOUT = factory.EnvironmentConfig(task="breakout", num_envs=3)
SUITES = (("catch", CATCH), ("minatar", MINATAR), ("pong", PONG), ("breakout", BREAKOUT))


def _play(environment, steps, seed=0):
    """Rows 0..steps of random play, each an EnvOutput [N]."""
    generator = np.random.default_rng(seed)
    num_actions = environment.action_spec().num_values
    rows = [environment.reset()]
    for _ in range(steps):
        actions = generator.integers(num_actions, size=environment.num_envs, dtype=np.int32)
        rows.append(environment.step(actions))
        np.testing.assert_array_equal(rows[-1].previous_action, actions)
    return rows


class ConventionTest(parameterized.TestCase):
    @parameterized.named_parameters(*SUITES)
    def test_rows_fit_the_specs(self, config):
        environment = factory.make_environment(config, seed=1)
        spec = environment.observation_spec()
        for row in _play(environment, 3):
            self.assertEqual(row.observation.shape, (3, *spec.shape))
            dtypes = [array.dtype for array in row]
            self.assertEqual(dtypes, [np.uint8, np.float32, np.float32, bool, np.int32])
            for array in row[1:]:
                self.assertEqual(array.shape, (3,))

    @parameterized.named_parameters(*SUITES)
    def test_every_end_is_followed_by_a_first_row(self, config):
        environment = factory.make_environment(config, seed=1)
        rows = _play(environment, 450)
        self.assertTrue(rows[0].is_first.all())
        firsts = np.stack([row.is_first for row in rows])
        discounts = np.stack([row.discount for row in rows])
        rewards = np.stack([row.reward for row in rows])
        self.assertGreater(firsts[1:].sum(), 0)
        np.testing.assert_array_equal(rewards[firsts], 0)
        np.testing.assert_array_equal(discounts[firsts], 1)
        self.assertContainsSubset(np.unique(discounts), [0, 1])
        for row, game in np.argwhere(firsts[1:]):
            if config is PONG:  # cut by the time limit
                self.assertEqual(discounts[row, game], 1)
                self.assertEqual(row % 101, 100)
            else:
                self.assertEqual(discounts[row, game], 0)

    @parameterized.named_parameters(*SUITES)
    def test_a_game_depends_on_its_seed_and_actions_only(self, config):
        batch = factory.make_environment(config, seed=5)
        rows = _play(batch, 150)
        alone = factory.make_environment(config, seed=7, num_envs=1)
        again = [alone.reset()]
        again += [alone.step(row.previous_action[2:]) for row in rows[1:]]
        for expected, actual in zip(rows, again, strict=True):
            for x, y in zip(expected, actual, strict=True):
                np.testing.assert_array_equal(x[2:], y)

    @parameterized.named_parameters(*SUITES)
    def test_rows_are_the_callers_to_keep(self, config):
        environment = factory.make_environment(config, seed=1)
        first = environment.reset()
        copies = [array.copy() for array in first]
        _play(environment, 20)
        for array, copy in zip(first, copies, strict=True):
            np.testing.assert_array_equal(array, copy)

    @parameterized.named_parameters(*SUITES)
    def test_rendering_shows_the_same_game(self, config):
        plain = _play(factory.make_environment(config, seed=3), 30)
        environment = factory.make_environment(config, seed=3, rendering=True)
        for x, y in zip(plain[-1], _play(environment, 30)[-1], strict=True):
            np.testing.assert_array_equal(x, y)
        picture = environment.render(1)
        self.assertEqual((picture.dtype, picture.shape[2]), (np.uint8, 3))
        self.assertGreater(len(np.unique(picture.reshape(-1, 3), axis=0)), 1)

    @parameterized.named_parameters(*SUITES)
    def test_invalid_actions_are_refused(self, config):
        environment = factory.make_environment(config, seed=1)
        environment.reset()
        num_actions = environment.action_spec().num_values
        for actions in (
            np.array([0, 0, num_actions]),
            np.array([0, -1, 0]),
            np.array([0, 0]),
            np.array([0.0, 0.0, 0.0]),
        ):
            with self.assertRaisesRegex(ValueError, "actions are"):
                environment.step(actions)
        environment.step(np.zeros(3, np.int64))  # still alive


class AtariTest(parameterized.TestCase):
    @parameterized.parameters(True, False)
    def test_a_lost_life_ends_the_return_but_not_the_game(self, life_loss_is_end):
        config = dataclasses.replace(BREAKOUT, num_envs=8, life_loss_is_end=life_loss_is_end)
        rows = _play(factory.make_environment(config, seed=1), 400)
        ends = sum(int((row.discount == 0).sum()) for row in rows)
        games = sum(int(row.is_first.sum()) for row in rows[1:])
        self.assertGreater(games, 3)
        if life_loss_is_end:
            self.assertGreater(ends, 4 * games)  # five lives a game
        else:
            self.assertBetween(ends, games, games + 8)

    def test_no_ops_are_drawn_up_to_the_maximum(self):
        for no_op_max, starts in ((0, [1]), (1, [2]), (30, range(5, 32))):
            config = dataclasses.replace(BREAKOUT, num_envs=64, no_op_max=no_op_max)
            environment = factory.make_environment(config, seed=1)
            environment.reset()
            with self.subTest(no_op_max):
                self.assertIn(len(np.unique(environment.frames_played())), starts)

    def test_rendering_keeps_step_with_the_game(self):
        environment = factory.make_environment(BREAKOUT, seed=2, rendering=True)
        row = _play(environment, 60)[-1]
        for game in range(3):
            grey = environment.render(game).mean(axis=2)
            small = grey[: 84 * 2 : 2, : 84 * 1 : 1]
            self.assertGreater(small.std(), 0)
            # The score bar and walls fill the same share of both pictures.
            self.assertAlmostEqual(np.mean(grey > 0), np.mean(row.observation[game] > 0), delta=0.1)

    def test_rendering_must_be_asked_for(self):
        environment = factory.make_environment(PONG, seed=1)
        environment.reset()
        with self.assertRaisesRegex(RuntimeError, "rendering=True"):
            environment.render(0)

    def test_all_57_games_of_the_reference_scores_exist(self):
        from laser_tf.scores import atari57

        self.assertLen(atari57.reference_scores(), 57)
        for game in atari57.reference_scores():
            atari.check_task(game)


class MinAtarTest(parameterized.TestCase):
    @parameterized.parameters("asterix", "breakout", "freeway", "seaquest", "space_invaders")
    def test_every_game_plays(self, task):
        environment = factory.make_environment(dataclasses.replace(MINATAR, task=task), seed=1)
        row = _play(environment, 50)[-1]
        self.assertContainsSubset(np.unique(row.observation), [0, 255])

    def test_the_time_limit_keeps_the_discount(self):
        config = dataclasses.replace(MINATAR, task="freeway", max_frames_per_episode=7)
        rows = _play(factory.make_environment(config, seed=1), 30)
        firsts = np.stack([row.is_first for row in rows])
        np.testing.assert_array_equal(np.flatnonzero(firsts[:, 0]), [0, 8, 16, 24])
        self.assertTrue(all((row.discount == 1).all() for row in rows))


class CatchTest(absltest.TestCase):
    def test_following_the_ball_wins(self):
        environment = factory.make_environment(dataclasses.replace(CATCH, num_envs=20), seed=1)
        row = environment.reset()
        total = 0.0
        for _ in range(19):
            boards = row.observation[..., 0]
            ball = boards[:, :9].max(axis=1).argmax(axis=1)
            paddle = boards[:, 9].argmax(axis=1)
            actions = np.where(boards[:, :9].any((1, 2)), np.sign(ball - paddle) + 1, 1)
            row = environment.step(actions)
            total += row.reward.sum()
        self.assertEqual(total, 40)  # two episodes of 9 steps in each of 20 games


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"task": "breakot"}, "breakot.*did you mean breakout"),
        ({"suite": "atary"}, "atary.*did you mean atari"),
        (
            {"suite": "minatar", "task": "seequest", "action_repeat": 1},
            "seequest.*did you mean seaquest",
        ),
        ({"suite": "catch", "task": "ball"}, "did you mean catch"),
        ({"suite": "catch", "task": "catch"}, "action_repeat is 4"),
        ({"num_envs": 0}, "num_envs is 0"),
        ({"action_repeat": 0}, "action_repeat is 0"),
        ({"no_op_max": -1}, "no_op_max is -1"),
        ({"sticky_actions": 1.0}, "sticky_actions is 1.0"),
        ({"max_frames_per_episode": 0}, "max_frames_per_episode is 0"),
    )
    def test_refuses_a_value_and_names_the_remedy(self, overrides, message):
        with self.assertRaisesRegex(ValueError, message):
            factory.EnvironmentConfig(**overrides)


if __name__ == "__main__":
    absltest.main()
