"""Configurations that are refused, and what making an environment loads."""

import dataclasses
import io
import pickle
import subprocess
import sys
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.environments import (
    atari,
    catch,
    environment_config,
    factory,
    minatar,
    suites,
    tmaze,
    vizdoom,
)
from testing import messages
from testing.environments import fake_minigrid, fake_vizdoom, rollouts


class EnvironmentConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("atari", {"task": "pang"}, ("pang", "pong")),
        ("minatar", {"task": "brekout"}, ("brekout", "breakout")),
        ("catch", {"task": "pong"}, ("pong", "catch")),
        ("atari", {"num_envs": 0}, ("num_envs", "0", "1")),
        ("atari", {"action_repeat": 0}, ("action_repeat", "0", "1")),
        ("atari", {"max_frames_per_episode": -1}, ("max_frames_per_episode", "-1", "0")),
        ("catch", {"action_repeat": 2}, ("action_repeat", "2", "1")),
        ("atari", {"num_threads": -1}, ("num_threads", "-1", "0")),
        ("atari", {"no_op_max": -1}, ("no_op_max", "-1", "0")),
        ("atari", {"max_broken_episodes": -1}, ("max_broken_episodes", "-1", "0")),
        ("atari", {"sticky_actions": -0.1}, ("sticky_actions", "-0.1")),
        ("minatar", {"sticky_actions": 1.0}, ("sticky_actions", "1.0")),
        ("catch", {"reward_offset": 1_001.0}, ("reward_offset", "1001.0", "1000")),
        ("tmaze", {"reward_offset": -1_001.0}, ("reward_offset", "-1001.0", "-1000")),
        ("tmaze", {"corridor_length": 0}, ("corridor_length", "0", "1")),
        ("minigrid", {"instruction_length": 0}, ("instruction_length", "0", "1")),
        ("dmlab", {"reply_seconds": 0.0}, ("reply_seconds", "0.0", "0")),
        ("tmaze", {"task": "maze"}, ("maze", "tmaze")),
        ("vizdoom", {"task": "basik"}, ("basik", "basic")),
        (
            "minigrid",
            {"task": "BabyAI-GoToLocl-v0"},
            ("BabyAI-GoToLocl-v0", "BabyAI-GoToLocal-v0"),
        ),
    )
    def test_refused_values_are_named_in_one_line(self, suite, values, named):
        self.enter_context(fake_minigrid.installed())
        with messages.raises(ValueError, *named) as context:
            suites.config_class(suite)(**values)
        self.assertNotIn("\n", str(context.exception))

    def test_an_unknown_suite_is_refused_with_close_names(self):
        with messages.raises(ValueError, "atary", "atari"):
            suites.config_class("atary")

    @parameterized.parameters(("gym", "gymnasium"), ("control", "dm_control"))
    def test_a_part_of_a_suite_name_suggests_that_suite(self, part, suite):
        with messages.raises(ValueError, part, suite) as caught:
            suites.config_class(part)
        for other in set(suites.SUITES) - {suite}:
            self.assertNotIn(other, str(caught.exception))

    @parameterized.parameters(
        ("atari", "ALE/MsPacman-v5", "ms_pacman"),
        ("atari", "ALE/UpNDown-v5", "up_n_down"),
        ("atari", "ALE/Pong-v5,breakout", "pong,breakout"),
        ("minatar", "MinAtar/SpaceInvaders-v1", "space_invaders"),
    )
    def test_names_as_gymnasium_has_them_are_the_suites_own(self, suite, task, own):
        self.assertEqual(suites.config_class(suite)(task=task).task, own)

    def test_a_suite_has_its_own_keys_only(self):
        keys = {field.name for field in dataclasses.fields(catch.CatchConfig)}
        shared = {field.name for field in dataclasses.fields(environment_config.EnvironmentConfig)}
        self.assertEqual(keys, shared | {"reward_offset", "wait_seconds"})


class MakeEnvironmentTest(parameterized.TestCase):
    @parameterized.parameters(
        (atari.AtariConfig(), atari.Atari, 4),
        (minatar.MinAtarConfig(), minatar.MinAtar, 1),
        (catch.CatchConfig(), catch.Catch, 1),
        (tmaze.TMazeConfig(), tmaze.TMaze, 1),
        (vizdoom.VizDoomConfig(action_repeat=3), vizdoom.VizDoom, 3),
    )
    def test_makes_each_suite_with_another_number_of_games(self, config, kind, action_repeat):
        self.enter_context(fake_vizdoom.installed())
        environment = factory.make_environment(config, seed=0, num_envs=2)
        self.assertIsInstance(environment, kind)
        self.assertEqual((environment.num_envs, environment.action_repeat), (2, action_repeat))
        self.assertEqual(environment.reset().reward.shape, (2,))
        self.assertEqual(environment.tasks, config.tasks)
        environment.close()

    @parameterized.parameters(
        ({"seed": 0, "num_envs": 0}, ("num_envs", "0")),
        ({"seed": -1}, ("seed", "-1")),
        ({"seed": 2**31 - 1, "num_envs": 2}, ("0", "2147483646")),
    )
    def test_refused_arguments(self, arguments, named):
        config = catch.CatchConfig()
        with messages.raises(ValueError, *named):
            factory.make_environment(config, **arguments)

    def test_the_largest_seed_plays(self):
        self.enter_context(fake_minigrid.installed())
        self.enter_context(fake_vizdoom.installed())
        for suite, task in (
            ("atari", "pong"),
            ("minatar", "breakout"),
            ("catch", "catch"),
            ("tmaze", "tmaze"),
            ("vizdoom", "basic"),
            ("minigrid", "BabyAI-GoToLocal-v0"),
        ):
            with rollouts.make(suite, task, num_envs=1, seed=2**31 - 1) as environment:
                environment.reset()

    def test_a_spec_travels_to_machines_without_tensorflow(self):
        program = """
import pickle, sys
from laser_tf.environments import factory, suites
for suite in ("catch", "tmaze", "minatar"):
    sys.stdout.buffer.write(pickle.dumps(factory.environment_spec(suites.config_class(suite)())))
assert "tensorflow" not in sys.modules
"""
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        stream = io.BytesIO(result.stdout)
        for suite in ("catch", "tmaze", "minatar"):
            spec = factory.environment_spec(suites.config_class(suite)())
            self.assertEqual(pickle.load(stream), spec)

    def test_a_spec_of_texts_and_several_tasks_is_the_same_elsewhere(self):
        self.enter_context(fake_minigrid.installed())
        config = suites.config_class("minigrid")(
            task="BabyAI-GoToLocal-v0,BabyAI-GoToSeq-v0", num_envs=8
        )
        spec = factory.environment_spec(config)
        self.assertEqual(spec.num_tasks, 2)
        self.assertEqual(pickle.loads(pickle.dumps(spec)), spec)

    def test_a_spec_s_environment_is_closed(self):
        with mock.patch.object(catch.Catch, "close") as close:
            factory.environment_spec(catch.CatchConfig())
        close.assert_called_once()

    def test_small_workers_load_neither_emulator_nor_plots_and_print_nothing(self):
        program = """
import sys
from laser_tf.environments import factory, suites
for suite in ("catch", "minatar", "atari"):
    loaded = {"ale_py", "matplotlib", "seaborn", "tensorflow"} & set(sys.modules)
    assert not loaded, loaded
    config = suites.config_class(suite)(num_envs=1)
    print("made", suite, file=sys.stderr)
    factory.make_environment(config, seed=0).reset()
"""
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout + result.stderr, "made catch\nmade minatar\nmade atari\n")


if __name__ == "__main__":
    absltest.main()
