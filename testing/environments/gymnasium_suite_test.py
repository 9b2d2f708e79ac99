"""Environments of gymnasium whose packages are not installed, whether or not they are here."""

import sys
from unittest import mock

import gymnasium
from absl.testing import absltest

from laser_tf.environments import faults, gymnasium_suite


def _needing_mujoco(render_mode=None):
    raise gymnasium.error.DependencyNotInstalled("MuJoCo is not installed, run `pip install it`")


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
