"""Environments of gymnasium: pictures of those that functions make, packages not installed."""

import contextlib
import re
import sys
from unittest import mock

import gymnasium
import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import faults, gymnasium_suite, suites
from launch import found_config
from testing import messages
from testing.environments import small_environments


def _needing_mujoco(render_mode=None):
    raise gymnasium.error.DependencyNotInstalled("MuJoCo is not installed, run `pip install it`")


def _needing_jax(render_mode=None):
    raise gymnasium.error.DependencyNotInstalled("jax is not installed, run `pip install it`")


def _wrapped(**arguments):
    return gymnasium.wrappers.TimeLimit(small_environments.Corridor(**arguments), 5)


class _Undrawn(small_environments.Corridor):
    """Says that it draws pictures, and cannot be asked for them."""

    def __init__(self):
        super().__init__()


def _wrapped_undrawn(**arguments):
    return gymnasium.wrappers.TimeLimit(_Undrawn(**arguments), 5)


class PictureTest(absltest.TestCase):
    def _make(self, entry_point):
        self.enter_context(mock.patch.dict(gymnasium.registry))
        gymnasium.register("Made-v0", entry_point=entry_point)
        environment = gymnasium_suite.make("Made-v0", {}, rendering=True, seed=0)
        self.enter_context(contextlib.closing(environment))
        environment.reset()
        return environment

    def test_what_a_function_makes_is_drawn_where_it_says_that_it_can_be(self):
        picture = self._make(_wrapped).render()
        self.assertEqual((picture.dtype, picture.shape), (np.uint8, (8, 56, 3)))

    def test_what_takes_no_render_mode_is_made_without_and_says_why_there_is_no_picture(self):
        environment = self._make(_wrapped_undrawn)
        with messages.raises(NotImplementedError, "render_mode", "None", "rgb_array"):
            environment.render()


class _OldStep(small_environments.Corridor):
    """Returns done in place of terminated and truncated, as for gym before 0.26."""

    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, info


class _OldReset(small_environments.Corridor):
    """Returns the observation alone, as for gym before 0.26."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class _UnseededReset(small_environments.Corridor):
    def reset(self):
        return super().reset()


class _OldWrapper(gymnasium.Wrapper):
    def step(self, action):
        return super().step(action)[:4]


class _NoInfo(small_environments.Corridor):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0], None


class OldApiTest(parameterized.TestCase):
    def _make(self, entry_point, **options):
        self.enter_context(mock.patch.dict(gymnasium.registry))
        gymnasium.register("Made-v0", entry_point=entry_point, **options)
        environment = gymnasium_suite.make("Made-v0", {}, rendering=False, seed=0)
        self.enter_context(contextlib.closing(environment))
        return environment

    @parameterized.product(
        entry_point=(_OldStep, lambda: _OldWrapper(small_environments.Corridor())),
        max_episode_steps=(None, 5),
    )
    def test_step_of_four_values_names_the_expected_values(self, entry_point, max_episode_steps):
        environment = self._make(entry_point, max_episode_steps=max_episode_steps)
        environment.reset()
        with messages.raises(ValueError, "step", "truncated", 4):
            environment.step(0)

    @parameterized.parameters(None, 5)
    def test_reset_without_info_names_the_expected_values(self, max_episode_steps):
        environment = self._make(_OldReset, max_episode_steps=max_episode_steps)
        with messages.raises(ValueError, "reset", "info", "ndarray"):
            environment.reset()

    def test_reset_without_keywords_names_the_expected_api(self):
        with messages.raises(ValueError, "reset", "seed", "info"):
            self._make(_UnseededReset).reset()

    def test_info_of_none_is_accepted(self):
        self.assertTrue(self._make(_NoInfo, max_episode_steps=5).reset().first())


class AnotherSuiteTest(parameterized.TestCase):
    @parameterized.parameters(
        ("ALE/MsPacman-v5", "atari"),
        ("PongNoFrameskip-v4", "atari"),
        ("MinAtar/Breakout-v1", "minatar"),
        ("BabyAI-GoToLocal-v0", "minigrid"),
        ("cheetah/run", "dm_control"),
    )
    def test_id_of_another_suite_names_suite_config_and_task(self, task, suite):
        self.enter_context(mock.patch.dict(gymnasium.registry))
        gymnasium.registry.pop(task, None)  # A test of another module may import ale_py.
        with self.assertRaises(faults.UnsupportedSpaceError) as caught:
            gymnasium_suite.make(task, {}, rendering=False, seed=0)
        message = str(caught.exception)
        self.assertIn(f"--suite={suite} --task={task}", message)
        self.assertIn(f"--config.environment.task={task}", message)
        if suite != "minigrid":  # Its package knows its tasks.
            suites.config_class(suite)(task=task)
        (config,) = re.findall(r"--config=(\S+)", message)
        self.assertIsNotNone(found_config.load(config))

    def test_minigrid_id_that_is_registered_names_its_suite(self):
        with mock.patch.dict(gymnasium.registry):
            gymnasium.register("MiniGrid-Small-v0", entry_point="minigrid.envs:EmptyEnv")
            with messages.raises(faults.UnsupportedSpaceError, "--suite=minigrid"):
                gymnasium_suite.make("MiniGrid-Small-v0", {}, rendering=False, seed=0)

    def test_own_minigrid_environment_is_made(self):
        with mock.patch.dict(gymnasium.registry):
            gymnasium.register("MiniGrid-Own-v0", entry_point=small_environments.Corridor)
            gymnasium_suite.make("MiniGrid-Own-v0", {}, rendering=False, seed=0).close()

    def test_own_id_without_module_names_the_form_with_module(self):
        with messages.raises(faults.UnsupportedSpaceError, "my_module:Hallway-v0"):
            gymnasium_suite.make("Hallway-v0", {}, rendering=False, seed=0)


class MissingPackageTest(absltest.TestCase):
    def _refusal(self, task, rendering=False):
        with self.assertRaises(faults.UnsupportedSpaceError) as caught:
            gymnasium_suite.make(task, {}, rendering, seed=0)
        return str(caught.exception)

    def test_without_box2d_the_message_says_what_to_run(self):
        loaded = {
            name: module for name, module in sys.modules.items() if "box2d" not in name.lower()
        }
        with mock.patch.dict(sys.modules, {**loaded, "Box2D": None}, clear=True):
            for rendering in (False, True):
                self.assertEqual(
                    self._refusal("LunarLander-v3", rendering),
                    "Box2D is not installed: run make box2d, or pip install box2d",
                )

    def test_other_packages_are_told_in_the_words_of_gymnasium(self):
        with mock.patch.dict(gymnasium.registry):
            gymnasium.register("Walking-v0", entry_point=_needing_jax)
            self.assertEqual(
                self._refusal("Walking-v0"), "jax is not installed, run `pip install it`"
            )

    def test_without_mujoco_the_message_names_make_control(self):
        with mock.patch.dict(gymnasium.registry):
            gymnasium.register("Walking-v0", entry_point=_needing_mujoco)
            message = self._refusal("Walking-v0")
        self.assertIn("make control", message)
        self.assertNotIn("pip install", message)


if __name__ == "__main__":
    absltest.main()
