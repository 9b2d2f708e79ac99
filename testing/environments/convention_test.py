"""What holds for every environment: the time convention, the specs and the seeds."""

import numpy as np
import tree
from absl.testing import absltest, parameterized

from laser_tf import types
from testing import messages
from testing.environments import fake_minigrid, fake_vizdoom, rollouts

# Limits of few env frames cut games that would last; the others end by themselves. Without sticky
# actions MinAtar's seaquest and space_invaders open alike whatever their seed.
ENVIRONMENTS = (
    ("catch", {"suite": "catch", "task": "catch"}),
    ("minatar_breakout", {"suite": "minatar", "task": "breakout", "sticky_actions": 0.1}),
    ("minatar_asterix", {"suite": "minatar", "task": "asterix", "max_frames_per_episode": 25}),
    ("minatar_freeway", {"suite": "minatar", "task": "freeway", "max_frames_per_episode": 100}),
    ("minatar_seaquest", {"suite": "minatar", "task": "seaquest", "sticky_actions": 0.1}),
    (
        "minatar_space_invaders",
        {"suite": "minatar", "task": "space_invaders", "sticky_actions": 0.1},
    ),
    ("atari_pong", {"suite": "atari", "task": "pong", "max_frames_per_episode": 200}),
    ("atari_breakout", {"suite": "atari", "task": "breakout", "sticky_actions": 0.25}),
    ("tmaze", {"suite": "tmaze", "task": "tmaze", "corridor_length": 2}),
    ("vizdoom_take_cover", {"suite": "vizdoom", "task": "take_cover"}),
    (
        "vizdoom_deadly_corridor",
        {"suite": "vizdoom", "task": "deadly_corridor", "max_frames_per_episode": 50},
    ),
    (
        "minigrid_empty",
        {"suite": "minigrid", "task": "MiniGrid-Empty-Random-5x5-v0", "max_frames_per_episode": 50},
    ),
    (
        "minigrid_babyai",
        {"suite": "minigrid", "task": "BabyAI-GoToLocal-v0", "max_frames_per_episode": 30},
    ),
)
STEPS = 250  # agent steps: enough for each to end more than once


def time_limit(options):
    """Env frames of the longest episode."""
    if options["suite"] == "tmaze":
        return 2 * (options["corridor_length"] + 2)
    return options.get("max_frames_per_episode", 108_000)


def assert_same(expected: types.EnvOutput, actual: types.EnvOutput, fields=types.EnvOutput._fields):
    for field in fields:
        tree.map_structure(
            np.testing.assert_array_equal, getattr(expected, field), getattr(actual, field)
        )


class EnvironmentTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(fake_vizdoom.installed())
        self.enter_context(fake_minigrid.installed())


class ConventionTest(EnvironmentTest):
    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_rows_follow_the_convention(self, options):
        with rollouts.make(**options, num_envs=3) as environment:
            actions = rollouts.random_actions(environment, STEPS)
            rows = rollouts.play(environment, actions)
        self.assertTrue(rows.is_first[0].all())
        self.assertTrue(rows.is_first[1:].any(), "some game should have ended")
        np.testing.assert_array_equal(rows.reward[rows.is_first], 0)
        np.testing.assert_array_equal(rows.discount[rows.is_first], 1)
        self.assertContainsSubset(np.unique(rows.discount), [0, 1])
        self.assertFalse((rows.is_first[1:] & rows.is_first[:-1]).any())
        np.testing.assert_array_equal(rows.previous_action[0], 0)
        np.testing.assert_array_equal(rows.previous_action[1:], actions)

    @parameterized.parameters(
        {"suite": "catch", "task": "catch"},
        {"suite": "tmaze", "task": "tmaze", "corridor_length": 2},
    )
    def test_an_offset_is_in_each_transitions_reward_and_changes_nothing_else(self, **options):
        plays = []
        for offset in (0.0, 1.5):
            with rollouts.make(**options, num_envs=3, reward_offset=offset) as environment:
                plays.append(rollouts.play(environment, rollouts.random_actions(environment, 60)))
        plain, offset = plays
        # The step between two episodes is no transition, and has reward 0 always.
        expected = plain.reward + 1.5 * ~plain.is_first
        self.assertTrue(plain.is_first[1:].any())
        assert_same(plain._replace(reward=expected.astype(np.float32)), offset)

    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_an_end_is_followed_by_a_first_row(self, options):
        if options["suite"] == "atari":  # a lost life has discount 0 too, without an end
            options = {**options, "life_loss_is_end": False}
        with rollouts.make(**options) as environment:
            rows = rollouts.play(environment, rollouts.random_actions(environment, STEPS))
            frames = environment.action_repeat
        ended = rows.discount[:-1] == 0
        self.assertTrue(rows.is_first[1:][ended].all())
        # Where a first row follows a discount of 1, the time limit has cut the episode.
        for index in range(2):
            starts = np.flatnonzero(rows.is_first[:, index])
            for start, next_start in zip(starts[:-1], starts[1:], strict=True):
                length = next_start - start - 1
                limit = -(-time_limit(options) // frames)
                self.assertLessEqual(length, limit)
                self.assertTrue(ended[next_start - 1, index] or length == limit)

    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_arrays_match_the_specs_and_are_kept(self, options):
        with rollouts.make(**options) as environment:
            rows = [environment.reset()]
            copies = [rollouts.map_columns(np.copy, rows[0])]
            for action in rollouts.random_actions(environment, 30).astype(np.int32):
                rows.append(environment.step(action))
                copies.append(rollouts.map_columns(np.copy, rows[-1]))
                action[:] = -1  # the caller's own array is nobody else's
            spec = environment.observation_spec()
        for leaf in tree.flatten(spec):
            if not isinstance(leaf, types.TextSpec):
                self.assertEqual(leaf.dtype, np.uint8)
                self.assertEqual((leaf.minimum.min(), leaf.maximum.max()), (0, 255))
        for row, copied in zip(rows, copies, strict=True):
            for leaf, values in zip(
                tree.flatten(spec), tree.flatten_up_to(spec, row.observation), strict=True
            ):
                self.assertLen(values, 2)
                for value in values:
                    leaf.validate(value)
            self.assertEqual(
                [(array.dtype, array.shape) for array in row[1:5]],
                [(np.float32, (2,)), (np.float32, (2,)), (bool, (2,)), (np.int32, (2,))],
            )
            assert_same(copied, row)

    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_the_action_after_an_end_is_ignored(self, options):
        with rollouts.make(**options) as environment:
            actions = rollouts.random_actions(environment, STEPS)
            expected = rollouts.play(environment, actions)
            num_actions = environment.action_spec().num_values
        others = np.where(expected.is_first[1:], (actions + 1) % num_actions, actions)
        with rollouts.make(**options) as environment:
            actual = rollouts.play(environment, others)
        np.testing.assert_array_equal(actual.previous_action[1:], others)
        assert_same(expected, actual, ("observation", "reward", "discount", "is_first"))


class SeedTest(EnvironmentTest):
    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_a_game_depends_on_its_seed_and_its_actions_only(self, options):
        with rollouts.make(**options, num_envs=3, seed=7) as environment:
            actions = rollouts.random_actions(environment, STEPS)
            batch = rollouts.play(environment, actions)
        with rollouts.make(**options, num_envs=1, seed=9) as environment:
            alone = rollouts.play(environment, actions[:, 2:])
        assert_same(rollouts.map_columns(lambda column: column[:, 2:], batch), alone)

    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_seeds_make_games_differ(self, options):
        with rollouts.make(**options, num_envs=4) as environment:
            same_for_all = rollouts.random_actions(environment, STEPS)[:, :1].repeat(4, axis=1)
            observation = rollouts.play(environment, same_for_all).observation
        played = [
            b"".join(leaf[:, index].tobytes() for leaf in tree.flatten(observation))
            for index in range(4)
        ]
        self.assertLen(set(played), 4)

    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_a_later_reset_starts_new_episodes_of_the_same_streams(self, options):
        def play_twice():
            with rollouts.make(**options, num_envs=4) as environment:
                actions = rollouts.random_actions(environment, 40)
                return rollouts.play(environment, actions), rollouts.play(environment, actions)

        first, second = play_twice()
        self.assertTrue(second.is_first[0].all())
        leaves = (tree.flatten(rows.observation) for rows in (first, second))
        self.assertFalse(all(map(np.array_equal, *leaves)))
        assert_same(second, play_twice()[1])


class InvalidActionTest(EnvironmentTest):
    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_invalid_actions_raise_and_do_no_harm(self, options):
        with rollouts.make(**options) as environment:
            num_actions = environment.action_spec().num_values
            environment.reset()
            for actions, named in (
                (np.array([0, num_actions]), (0, num_actions - 1)),
                (np.array([-1, 0]), ("[-1, 0]",)),
                (np.array([0]), ("int32[2]",)),
                (np.array([[0, 0]]), ("int32[2]",)),
                (np.array([0.0, 1.0]), ("float64[2]",)),
                (np.array([True, False]), ("bool[2]",)),
            ):
                with messages.raises(ValueError, *named):
                    environment.step(actions)
            np.testing.assert_array_equal(environment.step([1, 2]).previous_action, [1, 2])

    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_step_needs_a_reset_and_an_open_environment(self, options):
        with rollouts.make(**options) as environment:
            with messages.raises(RuntimeError):
                environment.step(np.zeros(2, int))
            environment.reset()
        with self.assertRaises(RuntimeError):
            environment.step(np.zeros(2, int))
        environment.close()


if __name__ == "__main__":
    absltest.main()
