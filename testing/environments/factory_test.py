"""Tests of the creation of environments: arguments, seeds, loaded packages."""

import io
import pickle
import subprocess
import sys
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.environments import catch, factory, python_environments, suites
from testing import messages
from testing.environments import fake_packages, rollouts


class MakeEnvironmentTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"seed": 0, "num_envs": 0}, ("num_envs", "0")),
        ({"seed": -1}, ("seed", "-1")),
        ({"seed": 2**31 - 1, "num_envs": 2}, ("0", "2147483646")),
    )
    def test_argument_out_of_range_is_named(self, arguments, named):
        config = catch.CatchConfig()
        with messages.raises(ValueError, *named):
            factory.make_environment(config, **arguments)

    def test_largest_seed_is_valid(self):
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

    @parameterized.parameters(
        ("minigrid", "minigrid", "MiniGrid", "make minigrid"),
        ("vizdoom", "vizdoom", "ViZDoom", "make vizdoom"),
        ("dm_control", "dm_control", "dm_control", "make control"),
        ("dmlab", "deepmind_lab", "github.com/google-deepmind/lab", "bazel build"),
    )
    def test_missing_package_is_named_before_workers_start(self, suite, package, *named):
        with (
            mock.patch.dict(sys.modules, {package: None}),
            mock.patch.object(python_environments, "PythonEnvironments") as started,
            messages.raises(ImportError, *named),
        ):
            factory.make_environment(suites.config_class(suite)(), seed=0)
        started.assert_not_called()

    def test_specs_of_texts_and_several_tasks_can_be_pickled(self):
        self.enter_context(fake_packages.installed())
        config = suites.config_class("minigrid")(
            task="BabyAI-GoToLocal-v0,BabyAI-GoToSeq-v0", num_envs=8
        )
        spec = factory.environment_spec(config)
        self.assertEqual(spec.num_tasks, 2)
        self.assertEqual(pickle.loads(pickle.dumps(spec)), spec)

    def test_creation_loads_no_other_packages_and_prints_nothing(self):
        program = """
import pickle, sys
from laser_tf.environments import factory, suites
for suite in ("catch", "tmaze", "minatar", "atari"):
    loaded = {"ale_py", "matplotlib", "seaborn", "tensorflow"} & set(sys.modules)
    assert not loaded, loaded
    spec = factory.environment_spec(suites.config_class(suite)(num_envs=1))
    sys.stdout.buffer.write(pickle.dumps(spec))
"""
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        stream = io.BytesIO(result.stdout)
        for suite in ("catch", "tmaze", "minatar", "atari"):
            spec = factory.environment_spec(suites.config_class(suite)())
            self.assertEqual(pickle.load(stream), spec)
        self.assertEmpty(stream.read())


if __name__ == "__main__":
    absltest.main()
