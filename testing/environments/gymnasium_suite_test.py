"""Environments of gymnasium: pictures of those that functions make, packages not installed."""

import contextlib
import sys
from unittest import mock

import gymnasium
import numpy as np
from absl.testing import absltest

from laser_tf.environments import faults, gymnasium_suite
from testing.environments import small_environments


def _needing_mujoco(render_mode=None):
    raise gymnasium.error.DependencyNotInstalled("MuJoCo is not installed, run `pip install it`")


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
        with self.assertRaisesRegex(NotImplementedError, "its render_mode is None, not 'rgb_arr"):
            environment.render()


class MissingPackageTest(absltest.TestCase):
    def _refusal(self, task, rendering=False):
        with self.assertRaises(faults.RefusedError) as caught:
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
            gymnasium.register("Walking-v0", entry_point=_needing_mujoco)
            self.assertEqual(
                self._refusal("Walking-v0"), "MuJoCo is not installed, run `pip install it`"
            )


if __name__ == "__main__":
    absltest.main()
