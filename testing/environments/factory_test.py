"""Configurations that are refused, and what making an environment loads."""

import subprocess
import sys

from absl.testing import absltest, parameterized

from laser_tf.environments import (
    atari,
    catch,
    environment_config,
    factory,
    minatar,
    minigrid,
    tmaze,
    vizdoom,
)
from testing.environments import fake_minigrid, fake_vizdoom, rollouts


class EnvironmentConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"suite": "atary"}, "suite 'atary'.*atari"),
        ({"task": "pang"}, "game 'pang'.*pong"),
        ({"suite": "minatar", "task": "brekout", "action_repeat": 1}, "'brekout'.*breakout"),
        ({"suite": "catch", "task": "pong", "action_repeat": 1}, "'pong'.*catch"),
        ({"num_envs": 0}, "num_envs is 0: use 1 or more"),
        ({"action_repeat": 0}, "action_repeat is 0: use 1 or more"),
        ({"max_frames_per_episode": 0}, "max_frames_per_episode is 0: use 1 or more"),
        ({"num_threads": -1}, "num_threads is -1: use 0 or more"),
        ({"no_op_max": -1}, "no_op_max is -1: use 0 or more"),
        ({"sticky_actions": -0.1}, "sticky_actions is -0.1: use a probability"),
        ({"sticky_actions": 1.0}, "sticky_actions is 1.0: use a probability"),
        ({"suite": "minatar", "task": "breakout"}, "action_repeat is 4: minatar has none, use 1"),
        ({"suite": "catch", "task": "catch"}, "action_repeat is 4: catch has none, use 1"),
        (
            {"suite": "catch", "task": "catch", "action_repeat": 1, "sticky_actions": 0.1},
            "sticky_actions is 0.1: catch has none, use 0",
        ),
        ({"corridor_length": 0}, "corridor_length is 0: use 1 or more"),
        ({"instruction_length": 0}, "instruction_length is 0: use 1 or more"),
        ({"suite": "tmaze", "task": "maze", "action_repeat": 1}, "task of tmaze 'maze'.*tmaze"),
        ({"suite": "tmaze", "task": "tmaze"}, "action_repeat is 4: tmaze has none, use 1"),
        ({"suite": "vizdoom", "task": "basik"}, "ViZDoom scenario 'basik'.*basic"),
        (
            {"suite": "vizdoom", "task": "basic", "sticky_actions": 0.25},
            "sticky_actions is 0.25: vizdoom has none, use 0",
        ),
        (
            {"suite": "minigrid", "task": "BabyAI-GoToLocl-v0", "action_repeat": 1},
            "MiniGrid task 'BabyAI-GoToLocl-v0'.*BabyAI-GoToLocal-v0",
        ),
        (
            {"suite": "minigrid", "task": "BabyAI-GoToLocal-v0"},
            "action_repeat is 4: minigrid has none, use 1",
        ),
    )
    def test_refused_values_are_named_in_one_line(self, values, message):
        self.enter_context(fake_minigrid.installed())
        with self.assertRaisesRegex(ValueError, message) as context:
            environment_config.EnvironmentConfig(**values)
        self.assertNotIn("\n", str(context.exception))


class MakeEnvironmentTest(parameterized.TestCase):
    @parameterized.parameters(
        ("atari", "pong", atari.Atari, 4),
        ("minatar", "breakout", minatar.MinAtar, 1),
        ("catch", "catch", catch.Catch, 1),
        ("tmaze", "tmaze", tmaze.TMaze, 1),
        ("vizdoom", "basic", vizdoom.VizDoom, 3),
        ("minigrid", "BabyAI-GoToLocal-v0", minigrid.MiniGrid, 1),
    )
    def test_makes_each_suite_with_another_number_of_games(self, suite, task, kind, action_repeat):
        self.enter_context(fake_minigrid.installed())
        self.enter_context(fake_vizdoom.installed())
        config = environment_config.EnvironmentConfig(
            suite=suite, task=task, action_repeat=action_repeat
        )
        environment = factory.make_environment(config, seed=0, num_envs=2)
        self.assertIsInstance(environment, kind)
        self.assertEqual((environment.num_envs, environment.action_repeat), (2, action_repeat))
        self.assertEqual(environment.reset().reward.shape, (2,))
        environment.close()

    @parameterized.parameters(
        ({"seed": 0, "num_envs": 0}, "num_envs is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**31 - 1, "num_envs": 2}, "use 0 to 2147483646"),
    )
    def test_refused_arguments(self, arguments, message):
        config = environment_config.EnvironmentConfig(suite="catch", task="catch", action_repeat=1)
        with self.assertRaisesRegex(ValueError, message):
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

    def test_small_games_load_neither_emulator_nor_plots_and_print_nothing(self):
        program = """
import sys
from laser_tf.environments import environment_config, factory
for suite, task in (("catch", "catch"), ("minatar", "breakout"), ("atari", "pong")):
    loaded = {"ale_py", "matplotlib", "seaborn", "tensorflow"} & set(sys.modules)
    assert not loaded, loaded
    repeat = 4 if suite == "atari" else 1
    config = environment_config.EnvironmentConfig(
        suite=suite, task=task, num_envs=1, action_repeat=repeat
    )
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
