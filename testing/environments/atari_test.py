"""Tests of Atari games: lost lives, time limits, starts, rendering, protocols."""

import contextlib
import pathlib

import numpy as np
from absl.testing import absltest, parameterized
from ale_py import roms

from configs import laser
from laser_tf.environments import atari
from laser_tf.scores import reference
from laser_tf.training import run_config
from testing import messages
from testing.environments import rollouts


def lost_lives(outputs):
    """Returns the steps bool [T, N] with discount 0 within an episode."""
    return (outputs.discount[:-1] == 0) & ~outputs.is_first[1:]


def native_threads():
    """Returns the number of threads, including those of ALE."""
    return len(list(pathlib.Path("/proc/self/task").iterdir()))


class LifeLossTest(absltest.TestCase):
    def _run_breakout(self, **options):
        with rollouts.make("atari", "breakout", seed=1, **options) as environment:
            return rollouts.run(environment, rollouts.random_actions(environment, 400))

    def test_lost_life_has_discount_0_within_the_episode(self):
        split, whole = (self._run_breakout(life_loss_is_end=value) for value in (True, False))
        for field in ("observation", "reward", "is_first", "previous_action"):
            np.testing.assert_array_equal(getattr(split, field), getattr(whole, field), field)
        np.testing.assert_array_equal(whole.discount[:-1] == 0, whole.is_first[1:])
        self.assertFalse(lost_lives(whole).any())
        # Breakout has five lives; the fifth loss is the episode's end.
        starts = np.flatnonzero(split.is_first[:, 0])
        self.assertGreater(len(starts), 1)
        np.testing.assert_array_equal(split.discount[: starts[1], 0].sum(), starts[1] - 5)

    def test_life_lost_at_the_time_limit_has_discount_0(self):
        outputs = self._run_breakout()
        loss = np.flatnonzero(lost_lives(outputs)[:, 0])[0]
        cut = self._run_breakout(max_frames_per_episode=4 * int(loss))
        self.assertEqual(cut.discount[loss, 0], 0)
        self.assertTrue(cut.is_first[loss + 1, 0])

    def test_last_life_counts_if_ale_counts_it_as_zero(self):
        with rollouts.make("atari", "bank_heist", seed=3, num_envs=1) as environment:
            outputs = rollouts.run(environment, rollouts.random_actions(environment, 900, seed=1))
        end = np.flatnonzero(outputs.is_first)[1]
        self.assertEqual((outputs.discount[:end] == 0).sum(), 5)  # Four spare lives and the end.

    def test_rising_number_of_lives_is_no_loss(self):
        # demon_attack has 1 life on its first frame and 4 afterwards.
        options = {"no_op_max": 0, "max_frames_per_episode": 40}
        with rollouts.make("atari", "demon_attack", num_envs=1, **options) as environment:
            outputs = rollouts.run(environment, rollouts.random_actions(environment, 25))
        self.assertEqual(outputs.is_first.sum(), 3)
        np.testing.assert_array_equal(outputs.discount, 1)


class TimeLimitTest(parameterized.TestCase):
    @parameterized.parameters((40, 10), (41, 11), (44, 11))
    def test_time_limit_counts_frames_after_the_no_ops(self, frames, agent_steps):
        with rollouts.make("atari", "pong", max_frames_per_episode=frames) as environment:
            outputs = rollouts.run(environment, rollouts.random_actions(environment, 30))
        np.testing.assert_array_equal(outputs.discount, 1)
        np.testing.assert_array_equal(
            np.flatnonzero(outputs.is_first[:, 1]), np.arange(0, 31, agent_steps + 1)
        )


class StartTest(parameterized.TestCase):
    def test_episode_starts_with_one_to_max_no_ops(self):
        # IMPALA: "uniformly chosen from [1, 30]". Each frame of freeway's start differs from the
        # one before; four frames cut an episode, so that every second step is a start.
        def starts(no_op_max):
            options = {"no_op_max": no_op_max, "max_frames_per_episode": 4, "num_envs": 4}
            with rollouts.make("atari", "freeway", **options) as environment:
                resets = np.stack([environment.reset().observation for _ in range(10)])
                outputs = rollouts.run(environment, np.zeros([20, 4], np.int64))
            self.assertTrue(outputs.is_first[::2].all())
            self.assertFalse(outputs.is_first[1::2].any())
            return distinct(resets), distinct(outputs.observation[2::2])

        def distinct(frames):
            return {frame.tobytes() for frame in frames.reshape(-1, *frames.shape[2:])}

        at_once, after_a_cut = starts(no_op_max=0)
        self.assertLen(at_once, 1)
        self.assertEqual(after_a_cut, at_once)
        resets, after_a_cut = starts(no_op_max=2)
        self.assertLen(resets, 2)
        self.assertEqual(after_a_cut, resets)
        self.assertNoCommonElements(resets, at_once)

    def test_sticky_actions_change_the_observations(self):
        def run(sticky_actions):
            options = {"sticky_actions": sticky_actions, "no_op_max": 0, "num_envs": 1}
            with rollouts.make("atari", "breakout", **options) as environment:
                actions = rollouts.random_actions(environment, 60)
                return rollouts.run(environment, actions).observation

        self.assertFalse(np.array_equal(run(0.0), run(0.5)))


class RenderTest(absltest.TestCase):
    def test_rendering_does_not_change_the_episodes(self):
        # Every second start samples 0 no-ops at first, so the images must restart, too.
        options = {"sticky_actions": 0.25, "max_frames_per_episode": 200, "no_op_max": 1}
        with rollouts.make("atari", "breakout", num_envs=3, seed=5, **options) as environment:
            actions = rollouts.random_actions(environment, 250)
            together = rollouts.run(environment, actions)
        with rollouts.make(
            "atari", "breakout", num_envs=1, seed=7, rendering=True, **options
        ) as environment:
            outputs = [environment.reset()]
            for action in actions[:, 2:]:
                self._assert_image_shows(environment.render(0), outputs[-1].observation[0])
                outputs.append(environment.step(action))
        for field in ("observation", "reward", "discount", "is_first"):
            again = np.stack([getattr(output, field)[0] for output in outputs])
            np.testing.assert_array_equal(getattr(together, field)[:, 2], again, field)

    def _assert_image_shows(self, image, observation):
        self.assertEqual((image.dtype, image.shape), (np.uint8, (210, 160, 3)))
        grey = image @ [0.299, 0.587, 0.114]
        # Both sizes divide into 42 x 4 tiles, whose means survive the resizing by areas.
        tiles = [
            image.reshape(42, image.shape[0] // 42, 4, -1).mean((1, 3))
            for image in (grey, observation[:, :, 0])
        ]
        np.testing.assert_allclose(*tiles, atol=1.5)

    def test_render_without_rendering_raises(self):
        with rollouts.make("atari", "pong", num_envs=1) as environment:
            environment.reset()
            with messages.raises(RuntimeError, "rendering=True"):
                environment.render(0)


class ProtocolTest(parameterized.TestCase):
    @parameterized.parameters(
        ("impala", 0.0, True, 30, False, 108_000),
        ("dopamine", 0.25, False, 0, False, 108_000),
        ("revisiting", 0.25, False, 0, True, 18_000),
    )
    def test_variant_sets_the_values_of_its_protocol(self, name, *expected):
        keys = atari.PROTOCOLS[name]
        values = laser.get_config(f"atari_{name}" if name != "impala" else "atari").to_dict()
        environment = run_config.parse(values).environment
        self.assertEqual([getattr(environment, key) for key in keys], list(expected))
        self.assertEqual(environment.protocol()["protocol"], name)
        for key in keys:  # Nothing else differs.
            values["environment"][key] = laser.get_config("atari").environment[key]
        self.assertEqual(values, laser.get_config("atari").to_dict())

    def test_other_values_are_own_protocol(self):
        self.assertEqual(atari.AtariConfig().protocol()["protocol"], "impala")
        for key, value in (("sticky_actions", 0.1), ("life_loss_is_end", True)):
            values = atari.PROTOCOLS["dopamine"] | {key: value}
            self.assertEqual(atari.AtariConfig(**values).protocol()["protocol"], "own", key)


class TaskTest(parameterized.TestCase):
    def test_tasks_are_those_of_ale_for_one_player(self):
        two_players = {"combat", "joust", "maze_craze", "warlords"}
        self.assertCountEqual(atari.GAMES, {*roms.get_all_rom_ids()} - two_players)

    def test_tasks_of_the_benchmark_are_known(self):
        self.assertContainsSubset(reference.reference_scores("atari"), atari.GAMES)

    def test_close_ends_the_threads_of_emulators(self):
        # Many threads: libraries used by other tests may start or end a few of their own meanwhile.
        before = native_threads()
        with contextlib.ExitStack() as stack:
            environments = [
                stack.enter_context(rollouts.make("atari", "pong", rendering=True))
                for _ in range(8)
            ]
            for environment in environments:
                environment.reset()
            self.assertGreater(native_threads(), before + 8)
        self.assertLess(native_threads(), before + 8)


if __name__ == "__main__":
    absltest.main()
