"""DMLab-30 against a stand-in for the engine: the time convention and the seeds."""

import numpy as np
import tree
from absl.testing import absltest, parameterized

from laser_tf import types
from laser_tf.environments import dmlab_game, instructions
from testing.environments import fake_deepmind_lab, rollouts

TASK = "language_execute_random_task"
STEPS = 80  # agent steps: enough for each game to end twice


def _make(task=TASK, **options):
    options = {"action_repeat": 4, "num_envs": 2, **options}
    return rollouts.make("dmlab", task, **options)


def _assert_same(expected, actual, fields=types.EnvOutput._fields):
    for field in fields:
        tree.map_structure(
            np.testing.assert_array_equal, getattr(expected, field), getattr(actual, field)
        )


class DMLabTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(fake_deepmind_lab.installed())


class ConventionTest(DMLabTest):
    def test_rows_follow_the_convention(self):
        with _make(num_envs=3) as environment:
            actions = rollouts.random_actions(environment, STEPS)
            rows = rollouts.play(environment, actions)
        self.assertTrue(rows.is_first[0].all())
        self.assertTrue((rows.is_first[1:].sum(0) >= 2).all(), "all games should have ended twice")
        np.testing.assert_array_equal(rows.reward[rows.is_first], 0)
        np.testing.assert_array_equal(rows.discount[rows.is_first], 1)
        # The level's own end has discount 0, and the row after it opens an episode: nowhere else.
        np.testing.assert_array_equal(rows.discount[:-1] == 0, rows.is_first[1:])
        np.testing.assert_array_equal(rows.previous_action[0], 0)
        np.testing.assert_array_equal(rows.previous_action[1:], actions)

    def test_plays_the_engines_own_game(self):
        with _make(num_envs=2, seed=3) as environment:
            actions = rollouts.random_actions(environment, STEPS)
            rows = rollouts.play(environment, actions)
        random = np.random.RandomState(4)  # the second game's
        engine = fake_deepmind_lab.Lab(
            f"contributed/dmlab30/{TASK}",
            ["RGB_INTERLEAVED", "INSTR"],
            {"width": "96", "height": "72"},
        )
        engine.reset(seed=int(random.randint(2**31 - 1)))
        observations, reward, over, starts = engine.observations(), 0, False, True
        for row in range(STEPS + 1):
            np.testing.assert_array_equal(
                rows.observation["image"][row, 1], observations["RGB_INTERLEAVED"], str(row)
            )
            np.testing.assert_array_equal(
                rows.observation["text"][row, 1],
                instructions.encode(observations["INSTR"], 16),
                str(row),
            )
            self.assertEqual(
                (rows.reward[row, 1], rows.discount[row, 1], rows.is_first[row, 1]),
                (reward, 1 - over, starts),
                row,
            )
            if row == STEPS:
                break
            starts = over
            if starts:
                engine.reset(seed=int(random.randint(2**31 - 1)))
                reward, over = 0, False
            else:
                values = np.array(dmlab_game.ACTIONS[actions[row, 1]], np.intc)
                reward = engine.step(values, num_steps=4)
                over = not engine.is_running()
            if not over:  # at the end the engine shows nothing: the row before is repeated
                observations = engine.observations()

    def test_the_action_after_an_end_is_ignored(self):
        with _make() as environment:
            actions = rollouts.random_actions(environment, STEPS)
            expected = rollouts.play(environment, actions)
        others = np.where(expected.is_first[1:], (actions + 1) % 15, actions)
        with _make() as environment:
            actual = rollouts.play(environment, others)
        np.testing.assert_array_equal(actual.previous_action[1:], others)
        _assert_same(expected, actual, ("observation", "reward", "discount", "is_first"))

    def test_the_time_limit_keeps_the_discount(self):
        with _make(max_frames_per_episode=26) as environment:  # 7 steps of 4 frames reach it
            rows = rollouts.play(environment, rollouts.random_actions(environment, 24))
        np.testing.assert_array_equal(rows.discount, 1)
        for index in range(2):
            np.testing.assert_array_equal(np.flatnonzero(rows.is_first[:, index]), [0, 8, 16, 24])

    def test_arrays_match_the_specs_and_are_kept(self):
        with _make(instruction_length=5) as environment:
            rows = [environment.reset()]
            copies = [rollouts.map_columns(np.copy, rows[0])]
            for action in rollouts.random_actions(environment, 40).astype(np.int32):
                rows.append(environment.step(action))
                copies.append(rollouts.map_columns(np.copy, rows[-1]))
                action[:] = -1
            picture = environment.render(1)
            np.testing.assert_array_equal(picture, rows[-1].observation["image"][1])
            spec = environment.observation_spec()
            self.assertEqual(environment.action_spec().num_values, 15)
            self.assertEqual(environment.action_repeat, 4)
        self.assertEqual((spec["image"].shape, spec["image"].dtype), ((72, 96, 3), np.uint8))
        self.assertEqual(spec["text"], types.TextSpec(5))
        for row, copied in zip(rows, copies, strict=True):
            for name, leaf in spec.items():
                leaf.validate(row.observation[name][0])
            self.assertEqual(
                [(array.dtype, array.shape) for array in row[1:]],
                [(np.float32, (2,)), (np.float32, (2,)), (bool, (2,)), (np.int32, (2,))],
            )
            _assert_same(copied, row)


class SeedTest(DMLabTest):
    def test_a_game_depends_on_its_seed_and_its_actions_only(self):
        with _make(num_envs=3, seed=7) as environment:
            actions = rollouts.random_actions(environment, 40)
            batch = rollouts.play(environment, actions)
        with _make(num_envs=1, seed=9) as environment:
            alone = rollouts.play(environment, actions[:, 2:])
        _assert_same(rollouts.map_columns(lambda column: column[:, 2:], batch), alone)
        self.assertFalse(
            np.array_equal(batch.observation["image"][0, 0], batch.observation["image"][0, 1])
        )

    def test_a_later_reset_starts_new_episodes_of_the_same_streams(self):
        def play_twice():
            with _make() as environment:
                actions = rollouts.random_actions(environment, 4)
                return rollouts.play(environment, actions), rollouts.play(environment, actions)

        first, second = play_twice()
        self.assertTrue(second.is_first[0].all())
        self.assertFalse(np.array_equal(first.observation["image"], second.observation["image"]))
        _assert_same(second, play_twice()[1])


if __name__ == "__main__":
    absltest.main()
