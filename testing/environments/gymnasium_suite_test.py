"""Tests of the suite `gymnasium`: rendering, invalid results, missing packages, other suites."""

import contextlib
import re
import sys
from unittest import mock

import gymnasium
import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.api import config_files
from laser_tf.environments import faults, gymnasium_suite, suites
from testing import messages
from testing.environments import small_environments


def _needing(package):
    def make(render_mode=None):
        raise gymnasium.error.DependencyNotInstalled(f"{package} is not installed, pip install it")

    return make


class _WithoutRenderMode(small_environments.Corridor):
    def __init__(self):
        super().__init__()


def _wrapped(environment):
    return lambda **arguments: gymnasium.wrappers.TimeLimit(environment(**arguments), 5)


class _Results(small_environments.Corridor):
    """Returns the given results of `reset` and `step`."""

    def __init__(self, reset=(0, {}), step=None):
        super().__init__()
        self._reset_result, self._step_result = reset, step

    def reset(self, *, seed=None, options=None):
        return self._reset_result

    def step(self, action):
        return self._step_result


class GymnasiumTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(mock.patch.dict(gymnasium.registry))

    def _make(self, entry_point, rendering=False):
        gymnasium.register("Made-v0", entry_point=entry_point)
        environment = gymnasium_suite.make("Made-v0", {}, rendering, seed=0)
        return self.enter_context(contextlib.closing(environment))

    def _rejection(self, task, *named, rendering=False):
        with messages.raises(faults.UnsupportedSpaceError, *named) as caught:
            gymnasium_suite.make(task, {}, rendering, seed=0)
        return str(caught.exception)

    def test_environment_of_a_function_renders_images(self):
        environment = self._make(_wrapped(small_environments.Corridor), rendering=True)
        environment.reset()
        image = environment.render()
        self.assertEqual((image.dtype, image.shape), (np.uint8, (8, 56, 3)))

    def test_environment_without_render_mode_is_made_without(self):
        environment = self._make(_wrapped(_WithoutRenderMode), rendering=True)
        environment.reset()
        with messages.raises(NotImplementedError, "render_mode", "None", "rgb_array"):
            environment.render()

    @parameterized.parameters(
        ((0, 1.0, False, {}), ("step", "truncated", 4)),  # As before gym 0.26.
        ((0, 1.0, "False", False, {}), ("terminated", "'False'")),
        ((0, 1.0, False, None, {}), ("truncated", None)),
    )
    def test_invalid_result_of_step_is_named(self, result, named):
        environment = self._make(lambda: _Results(step=result))
        environment.reset()
        with messages.raises(ValueError, *named):
            environment.step(0)

    def test_reset_without_info_names_the_expected_values(self):
        environment = self._make(lambda: _Results(reset=np.zeros(2)))
        with messages.raises(ValueError, "reset", "info", "ndarray"):
            environment.reset()

    def test_info_of_none_is_accepted(self):
        self.assertTrue(self._make(lambda: _Results(reset=(0, None))).reset().first())

    @parameterized.parameters(
        ("ALE/MsPacman-v5", "atari"),
        ("PongNoFrameskip-v4", "atari"),
        ("MinAtar/Breakout-v1", "minatar"),
        ("BabyAI-GoToLocal-v0", "minigrid"),
        ("cheetah/run", "dm_control"),
    )
    def test_id_of_another_suite_names_the_flags(self, task, suite):
        gymnasium.registry.pop(task, None)  # A test of another module may import ale_py.
        message = self._rejection(task)
        self.assertIn(f"--suite={suite} --task={task}", message)
        self.assertIn(f"--config.environment.task={task}", message)
        if suite != "minigrid":  # Its package knows its tasks.
            suites.config_class(suite)(task=task)
        (config,) = re.findall(r"--config=(\S+)", message)
        self.assertIsNotNone(config_files.load(config))

    def test_unknown_id_of_an_own_module_names_no_suite(self):
        message = self._rejection(
            "testing.environments.small_environments:small/maze", "small/maze"
        )
        self.assertNotIn("--suite", message)

    def test_arguments_of_make_may_replace_defaults_but_not_the_id(self):
        made = gymnasium_suite.make("CartPole-v1", {"disable_env_checker": False}, False, seed=0)
        made.close()
        with messages.raises(faults.UnsupportedSpaceError, "arguments", "id", 3):
            gymnasium_suite.make("CartPole-v1", {"id": 3}, False, seed=0)

    def test_registered_minigrid_id_names_its_suite(self):
        gymnasium.register("MiniGrid-Small-v0", entry_point="minigrid.envs:EmptyEnv")
        self._rejection("MiniGrid-Small-v0", "--suite=minigrid")

    def test_own_environment_with_prefix_of_minigrid_is_made(self):
        gymnasium.register("MiniGrid-Own-v0", entry_point=small_environments.Corridor)
        gymnasium_suite.make("MiniGrid-Own-v0", {}, rendering=False, seed=0).close()

    def test_unknown_id_names_the_form_with_module(self):
        self._rejection("Hallway-v0", "my_module:Hallway-v0")

    @parameterized.parameters(False, True)
    def test_missing_box2d_names_the_command(self, rendering):
        loaded = {
            name: module for name, module in sys.modules.items() if "box2d" not in name.lower()
        }
        with mock.patch.dict(sys.modules, {**loaded, "Box2D": None}, clear=True):
            self._rejection("LunarLander-v3", "Box2D", "make box2d", rendering=rendering)

    @parameterized.parameters(("jax", "jax is not installed"), ("MuJoCo", "make control"))
    def test_missing_package_names_the_remedy(self, package, named):
        gymnasium.register("Walking-v0", entry_point=_needing(package))
        message = self._rejection("Walking-v0", named)
        self.assertEqual("pip install" in message, package == "jax")


if __name__ == "__main__":
    absltest.main()
