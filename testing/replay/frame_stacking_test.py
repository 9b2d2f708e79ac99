import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import observations
from laser_tf.replay import frame_stacking
from testing import numpy_reference

ROWS, B, H, W = 12, 3, 5, 4
# depth, channels: (4, 1) is Atari and has a code path of its own.
SHAPES = tuple((d, c) for d in (1, 2, 3, 4, 5) for c in (1, 3))


def _inputs(depth, channels, seed=0):
    """No byte is 0, so that the zeros of a stack are the padding; a third of the rows is first."""
    rng = np.random.default_rng(seed)
    rows = depth - 1 + ROWS
    frames = rng.integers(1, 256, size=[rows, B, H, W, channels], dtype=np.uint8)
    is_first = rng.uniform(size=[rows, B]) < 1 / 3
    is_first[:, 0] = False  # one column without any episode start
    return frames, is_first


class StackFramesTest(parameterized.TestCase):
    @parameterized.product(shape=SHAPES, jit_compile=(False, True))
    def test_stacks_equal_the_naive_loop(self, shape, jit_compile):
        depth, channels = shape
        frames, is_first = _inputs(depth, channels)
        stack_frames = tf.function(frame_stacking.stack_frames, jit_compile=jit_compile)
        actual = stack_frames(frames, is_first, depth)
        self.assertEqual(actual.dtype, tf.uint8)
        np.testing.assert_array_equal(actual, numpy_reference.stack_frames(frames, is_first, depth))

    @parameterized.parameters(*SHAPES)
    def test_actor_stacks_equal_learner_stacks(self, depth, channels):
        frames, is_first = _inputs(depth, channels)
        unroll = frame_stacking.stack_frames(tf.constant(frames), tf.constant(is_first), depth)
        stacker = frame_stacking.FrameStacker(
            frames.shape[1], observations.image_spec(*frames.shape[2:]), depth
        )
        stacks = [stacker.push(*row).copy() for row in zip(frames, is_first, strict=True)]
        np.testing.assert_array_equal(stacks[depth - 1 :], unroll)


if __name__ == "__main__":
    absltest.main()
