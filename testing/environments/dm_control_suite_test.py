"""Tests of the suite dm_control with a stand-in for the package, in worker processes."""

import os
import sys
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.environments import base, dm_control_suite
from testing import folders, messages
from testing.environments import fake_packages, rollouts


def make(task="cheetah/run", **options):
    options = {"num_workers": 1, "reply_seconds": 600.0, **options}
    return rollouts.make("dm_control", task, **options)


def constant(steps, value=0.5):
    return np.full([steps, 2, 2], value, np.float32)


class DmControlTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(fake_packages.installed())
        self.enter_context(mock.patch.dict(os.environ, {"MUJOCO_GL": "osmesa"}))

    def test_environments_have_own_seeds_and_vectors(self):
        with make(seed=5) as environment:
            outputs = rollouts.run(environment, constant(101))
        for index in range(2):
            generator = np.random.RandomState(5 + index)
            for start in (0, 101):
                place = np.float32(generator.uniform(-1, 1))
                self.assertEqual(outputs.observation["height"][start, index], place)
                arms = outputs.observation["arms"][start, index]
                np.testing.assert_array_equal(arms, np.full(6, place, np.float32))

    def test_images_replace_the_vectors(self):
        with make(arguments="pixels=20, time_limit=0.5", action_repeat=3) as environment:
            self.assertEqual(environment.observation_spec().shape, (20, 20, 3))
            outputs = rollouts.run(environment, constant(2))
        self.assertEqual(outputs.observation.dtype, np.uint8)
        np.testing.assert_array_equal(outputs.observation[..., :10, :], 2)
        # The other half counts images: one at the creation, then one for each step.
        np.testing.assert_array_equal(outputs.observation[:, 0, 0, 15, 0], [2, 3, 4])

    def test_render_returns_the_image_of_a_video(self):
        with make(rendering=True) as environment:
            environment.reset()
            image = environment.render(1)
        self.assertEqual((image.dtype, image.shape), (np.uint8, (240, 320, 3)))

    def test_environment_without_images_needs_no_renderer(self):
        with make() as environment:
            environment.reset()
            with messages.raises(base.RenderError, "libEGL"):
                environment.render(0)

    def test_images_without_renderer_are_rejected(self):
        with mock.patch.dict(os.environ, {"MUJOCO_GL": "disabled"}):
            with messages.raises(errors.ConfigError, "cheetah/run", "libEGL", "libOSMesa"):
                with make(arguments={"pixels": 20}):
                    pass

    @parameterized.parameters(
        (("libEGL.so.1", "libOSMesa.so.8"), "egl"),
        (("libOSMesa.so.6",), "osmesa"),
        ((), "disabled"),
    )
    def test_renderer_is_the_first_with_a_library(self, libraries, expected):
        self.enter_context(mock.patch.dict(sys.modules))  # Removes the stand-in.
        with mock.patch.dict(os.environ), mock.patch("ctypes.CDLL") as load:
            load.side_effect = lambda name: None if name in libraries else self.fail_to_load()
            del os.environ["MUJOCO_GL"]
            environment = dm_control_suite.make("cheetah/run", {}, rendering=True, seed=1)
            self.assertEqual(os.environ["MUJOCO_GL"], expected)
            environment.close()

    def fail_to_load(self):
        raise OSError("cannot open shared object file")


class MujocoVersionTest(folders.FolderTest):
    @parameterized.parameters(
        "raise AttributeError('no mjtObj')",
        "def load(*_, **__): raise AttributeError('no mjtObj')",
    )
    def test_unsuitable_mujoco_names_the_remedy(self, program):
        (self._folder / "dm_control").mkdir()
        (self._folder / "dm_control/__init__.py").write_text("")
        (self._folder / "dm_control/suite.py").write_text(program)
        self.enter_context(mock.patch.object(sys, "path", [str(self._folder), *sys.path]))
        with messages.raises(errors.ConfigError, "mjtObj", "make control"):
            with make():
                pass


if __name__ == "__main__":
    absltest.main()
