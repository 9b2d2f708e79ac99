"""Conversion of rendered images to RGB."""

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import result_checks
from testing import messages


class RenderedImageTest(parameterized.TestCase):
    @parameterized.parameters([[]], [[1]], [[3]], [[4]])
    def test_an_image_of_bytes_becomes_rgb(self, channels):
        image = np.random.default_rng(1).integers(256, size=[2, 5, *channels], dtype=np.uint8)
        rgb = result_checks.rgb_image(image)
        self.assertEqual((rgb.shape, rgb.dtype), ((2, 5, 3), np.uint8))
        np.testing.assert_array_equal(rgb - np.atleast_3d(image)[..., :3], 0)

    @parameterized.parameters(
        (np.zeros([4, 4, 3], np.float32), ("float32",)),
        (np.zeros([4, 4, 2], np.uint8), ("[4, 4, 2]",)),
        (np.zeros([0, 4, 3], np.uint8), ("[0, 4, 3]",)),
        (np.zeros([4], np.uint8), ("[4]",)),
        (np.array(None), ("object",)),
    )
    def test_another_array_raises_and_is_named(self, array, named):
        with messages.raises(ValueError, *named):
            result_checks.rgb_image(array)


if __name__ == "__main__":
    absltest.main()
