"""Configurations that are refused, and what making an environment loads."""

import io
import pickle
import subprocess
import sys
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.environments import (
    atari,
    catch,
    factory,
    minatar,
    python_environments,
    suites,
    tmaze,
    vizdoom,
)
from testing import messages
from testing.environments import fake_packages, rollouts


class MakeEnvironmentTest(parameterized.TestCase):
    @parameterized.parameters(
        (atari.AtariConfig(), atari.Atari, 4),
        (minatar.MinAtarConfig(), minatar.MinAtar, 1),
        (catch.CatchConfig(), catch.Catch, 1),
        (tmaze.TMazeConfig(), tmaze.TMaze, 1),
        (vizdoom.VizDoomConfig(action_repeat=3), python_environments.PythonEnvironments, 3),
    )
    def test_makes_each_suite_with_another_number_of_games(self, config, kind, action_repeat):
        self.enter_context(fake_packages.installed())
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
        self.enter_context(fake_packages.installed())
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
        self.enter_context(fake_packages.installed())
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
