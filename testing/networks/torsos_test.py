"""Tests shapes, parameter counts, features and compute dtypes of the torsos."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import torsos

SHAPES = dict.fromkeys(
    ("shallow", "shallow_equalised", "deep", "strided_deep", "dqn", "nature"), (84, 84, 4)
)
SHAPES |= {"reactor": (84, 84, 1), "minatar": (10, 10, 6), "flat": (10, 5, 1)}


def _parameters(module: tf.Module) -> int:
    return sum(int(np.prod(v.shape)) for v in module.trainable_variables)


def _torso(name: str, center: bool = False, dtype: str = "float32", multiplier: int = 1):
    tf.keras.utils.set_random_seed(1)
    return torsos.TORSOS[name](multiplier, center, dtype)


def _images(name: str, count: int = 3) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, *SHAPES[name]), dtype=np.uint8)


def _crelu(x: tf.Tensor) -> tf.Tensor:
    return tf.concat([tf.nn.relu(x), tf.nn.relu(-x)], axis=-1)


class TorsosTest(parameterized.TestCase):
    # Counts for 84x84x4 inputs, derived from figure 3 of IMPALA and table 3 of Reactor.
    @parameterized.parameters(
        # Conv 8x8x4x16 + 16, conv 4x4x16x32 + 32, dense 9*9*32 x 256 + 256.
        ("shallow", 256, 4112 + 8224 + 663_808),
        # Sections of (conv + 4 convs): 4->16, 16->32, 32->32, dense 11*11*32 x 256 + 256.
        ("deep", 256, (592 + 4 * 2320) + (4640 + 4 * 9248) + (9248 + 4 * 9248) + 991_488),
        # Same sections, dense 6*6*32 x 256 + 256.
        ("strided_deep", 256, (592 + 4 * 2320) + (4640 + 4 * 9248) + (9248 + 4 * 9248) + 295_168),
        # Conv 8x8x4x16 + 16, 4x4x32x32 + 32, 3x3x64x32 + 32, dense 7*7*64 x 128 + 128. The
        # concatenated ReLU doubles the input channels of each next layer.
        ("reactor", 256, 4112 + 16_416 + 18_464 + 401_536),
        # 8x8x4x32, 4x4x32x64 and 3x3x64x64, each with biases.
        ("dqn", 7 * 7 * 64, 8_224 + 32_832 + 36_928),
        # Same convolutions, dense 3136 x 512 + 512.
        ("nature", 512, 8_224 + 32_832 + 36_928 + 1_606_144),
    )
    def test_torso_has_expected_parameter_count(self, name, features, expected):
        torso = _torso(name)
        self.assertEqual(torso(tf.zeros([2, 84, 84, 4], tf.uint8)).shape, [2, features])
        self.assertEqual(_parameters(torso), expected)

    # Sizes and strides of the convolutions, from the first to the last.
    @parameterized.parameters(
        ("dqn", ((8, 4), (4, 2), (3, 1)), tf.nn.relu, False),
        ("nature", ((8, 4), (4, 2), (3, 1)), tf.nn.relu, True),
        ("shallow", ((8, 4), (4, 2)), tf.nn.relu, True),
        ("reactor", ((8, 4), (4, 2), (3, 1)), _crelu, True),
        ("minatar", ((3, 1),), tf.nn.relu, True),
        ("flat", (), tf.nn.relu, True),
    )
    def test_features_equal_reference(self, name, convolutions, activation, has_dense):
        torso, images = _torso(name), _images(name)
        features = torso(tf.constant(images))
        kernels = {v.shape[0]: v for v in torso.trainable_variables if v.shape.rank == 4}
        expected = tf.constant(images / 255, tf.float32)
        for size, stride in convolutions:  # Initial biases are zero.
            expected = activation(tf.nn.conv2d(expected, kernels[size], stride, "VALID"))
        expected = tf.reshape(expected, [len(images), -1])
        if has_dense:
            expected = activation(expected @ torso._dense.kernel)
        np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-4)
        self.assertBetween(np.mean(features == 0.0), 0.1, 0.9)
        # Float images are not scaled.
        np.testing.assert_allclose(
            torso(tf.constant(images / 255, tf.float32)), expected, rtol=1e-4, atol=1e-4
        )

    def test_equalised_torso_starts_as_shallow_and_changes_faster(self):
        images = tf.constant(_images("shallow"))
        shallow = _torso("shallow")
        features = shallow(images)  # Creates the weights from the same seed.
        equalised = _torso("shallow_equalised")
        np.testing.assert_allclose(equalised(images), features, rtol=1e-4, atol=1e-5)
        deviations = [
            np.std(variable)
            for variable in equalised.trainable_variables
            if variable.shape.rank > 1
        ]
        self.assertLess(max(deviations), 1.2 * min(deviations))
        # An equal step of all weights and biases, as in RMSProp, on the first convolution.
        changes = []
        for torso in (shallow, equalised):
            kernel, bias = torso._convolutions[0].trainable_variables
            before = torso._features(tf.ones([1, 84, 84, 4]))
            kernel.assign_add(tf.fill(kernel.shape, 1e-5))
            bias.assign_add(tf.fill(bias.shape, 1e-5))
            changes.append(np.linalg.norm(torso._features(tf.ones([1, 84, 84, 4])) - before))
        self.assertAlmostEqual(changes[1] / changes[0], 3.0, delta=0.1)

    @parameterized.parameters(("deep", 1), ("strided_deep", 2))
    def test_zero_residual_blocks_keep_inputs(self, name, first_stride):
        # Blocks with zero weights return their inputs.
        torso = _torso(name)
        observation = np.random.default_rng(1).integers(0, 256, (2, 16, 16, 4), dtype=np.uint8)
        torso(tf.constant(observation))
        expected = tf.constant(observation / 255, tf.float32)
        strides = (first_stride, 1, 1)
        for (convolution, blocks), stride in zip(torso._sections, strides, strict=True):
            for block in blocks:
                for variable in block.trainable_variables:
                    variable.assign(tf.zeros_like(variable))
            expected = tf.nn.conv2d(expected, convolution.kernel, stride, "SAME")
            expected = tf.nn.max_pool2d(expected, 3, 2, "SAME")
        flat = tf.reshape(tf.nn.relu(expected), [2, -1])
        self.assertGreater(np.abs(flat).max(), 0.1)
        expected = tf.nn.relu(flat @ torso._dense.kernel)
        np.testing.assert_allclose(torso(tf.constant(observation)), expected, rtol=1e-4, atol=1e-5)

    def test_residual_block_equals_reference(self):
        block = torsos._ResidualBlock(3, "float32")
        inputs = tf.random.stateless_normal([2, 5, 5, 3], [0, 1])
        np.testing.assert_array_equal(block(inputs), inputs)  # A fresh block is the identity.
        first, second = (convolution.kernel for convolution in block._convolutions)
        second.assign(tf.random.stateless_normal(second.shape, [0, 2]))
        inside = tf.nn.conv2d(tf.nn.relu(inputs), first, 1, "SAME")
        inside = tf.nn.conv2d(tf.nn.relu(inside), second, 1, "SAME")
        np.testing.assert_allclose(block(inputs), inputs + inside, rtol=1e-4, atol=1e-5)

    @parameterized.parameters("shallow", "deep", "strided_deep", "dqn", "nature")
    def test_initial_features_have_unit_scale(self, name):
        features = _torso(name)(tf.random.stateless_normal([4, 84, 84, 4], [0, 1]))
        # Values and logits are sums of features. With features near 20 the norm of the first
        # gradient is 10^7.
        self.assertBetween(tf.sqrt(tf.reduce_mean(features**2)), 0.2, 3.0)

    @parameterized.parameters(("deep", 4, [64, 128]), ("dqn", 2, [64, 128]))
    def test_channel_multiplier_widens_convolutions(self, name, multiplier, expected):
        torso = _torso(name, multiplier=multiplier)
        torso(tf.zeros([1, 84, 84, 4], tf.uint8))
        widths = sorted({v.shape[-1] for v in torso.trainable_variables if v.shape.rank == 4})
        self.assertEqual(widths, expected)

    @parameterized.parameters(
        ("deep", True), ("nature", False), ("reactor", True), ("minatar", False), ("flat", True)
    )
    def test_bfloat16_is_close_and_centering_ignores_brightness(self, name, center):
        images = _images(name, 4)[:, :44, :44] // 3
        bright = images + np.array([0, 20, 80, 150], np.uint8)[:, None, None, None]
        torso = _torso(name, center)
        features = torso(tf.constant(images))
        small = _torso(name, center, "bfloat16")
        rounded = small(tf.constant(images))
        self.assertEqual(rounded.dtype, tf.bfloat16)
        self.assertTrue(all(v.dtype == tf.float32 for v in small.trainable_variables))
        largest = np.abs(features).max()
        np.testing.assert_allclose(tf.cast(rounded, tf.float32), features, atol=0.05 * largest)
        difference = np.abs(torso(tf.constant(bright)) - features).max()
        self.assertEqual((difference < 1e-3, difference > 0.01), (center, not center))

    @parameterized.parameters(("relu", tf.nn.relu, 2.0), ("tanh", tf.tanh, 1.0))
    def test_mlp_applies_activation_after_each_layer(self, name, activation, scale):
        mlp = torsos.MLP((400, 2), name, "float32")
        vectors = tf.random.stateless_normal([4, 100], [0, 1])
        outputs = mlp(vectors)
        # The activation also sets the variance of the initial weights.
        self.assertAlmostEqual(np.var(mlp._layers[0].kernel) * 100, scale, delta=0.05 * scale)
        for layer in mlp._layers:
            vectors = activation(vectors @ layer.kernel)
        np.testing.assert_allclose(outputs, vectors, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    absltest.main()
