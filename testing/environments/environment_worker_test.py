"""Tests of the checks of time steps and images."""

import dm_env
import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import environment_worker
from testing import messages


class TimeStepTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"step_type": 7}, ("StepType", 7)),
        ({"step_type": -1}, ("StepType", -1)),
        ({"step_type": dm_env.StepType.FIRST}, ("step()", "FIRST", "MID")),
        ({"reward": np.zeros(2)}, ("reward", "array([0., 0.])")),
        ({"reward": None}, ("reward", None)),
        ({"discount": 1.5}, ("discount", 1.5)),
    )
    def test_invalid_time_step_is_named(self, values, named):
        time_step = dm_env.transition(1.0, None)._replace(**values)
        with messages.raises(ValueError, *named):
            environment_worker.check_time_step(time_step, starts=False)

    @parameterized.parameters((None, "NoneType"), ((1.0, False), "tuple"))
    def test_result_that_is_no_time_step_is_named(self, result, name):
        with messages.raises(ValueError, "reset()", "dm_env.TimeStep", name):
            environment_worker.check_time_step(result, starts=True)

    def test_arrays_of_rank_0_are_accepted(self):
        time_step = dm_env.TimeStep(np.int32(2), np.float32(0.5), np.array(0), None)
        self.assertEqual(
            environment_worker.check_time_step(time_step, starts=False), (0.5, 0.0, True)
        )


class RenderedImageTest(parameterized.TestCase):
    @parameterized.parameters([[]], [[1]], [[3]], [[4]])
    def test_image_of_bytes_becomes_rgb(self, channels):
        image = np.random.default_rng(1).integers(256, size=[2, 5, *channels], dtype=np.uint8)
        rgb = environment_worker.rgb_image(image)
        self.assertEqual((rgb.shape, rgb.dtype), ((2, 5, 3), np.uint8))
        np.testing.assert_array_equal(rgb - np.atleast_3d(image)[..., :3], 0)

    @parameterized.parameters(
        (np.zeros([4, 4, 3], np.float32), ("float32",)),
        (np.zeros([4, 4, 2], np.uint8), ("[4, 4, 2]",)),
        (np.zeros([0, 4, 3], np.uint8), ("[0, 4, 3]",)),
        (np.zeros([4], np.uint8), ("[4]",)),
        (np.array(None), ("object",)),
    )
    def test_other_array_raises_and_is_named(self, array, named):
        with messages.raises(ValueError, *named):
            environment_worker.rgb_image(array)


if __name__ == "__main__":
    absltest.main()
