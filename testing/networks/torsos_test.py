"""Tests shapes, parameter counts and compute dtypes of the torsos."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import torsos


def _parameters(module: tf.Module) -> int:
    return sum(int(np.prod(v.shape)) for v in module.trainable_variables)


class TorsosTest(parameterized.TestCase):
    # Counts for 84x84x4 inputs, derived from figure 3 of IMPALA and table 3 of Reactor.
    @parameterized.parameters(
        # Conv 8x8x4x16 + 16, conv 4x4x16x32 + 32, dense 9*9*32 x 256 + 256.
        ("shallow", 1, 4112 + 8224 + 663_808),
        # Sections of (conv + 4 convs): 4->16, 16->32, 32->32, dense 11*11*32 x 256 + 256.
        (
            "deep",
            1,
            (592 + 4 * 2320) + (4640 + 4 * 9248) + (9248 + 4 * 9248) + 991_488,
        ),
        # Same sections, dense 6*6*32 x 256 + 256.
        (
            "strided_deep",
            1,
            (592 + 4 * 2320) + (4640 + 4 * 9248) + (9248 + 4 * 9248) + 295_168,
        ),
        # Conv 8x8x4x16 + 16, 4x4x32x32 + 32, 3x3x64x32 + 32, dense 7*7*64 x 128 + 128. The
        # concatenated ReLU doubles the input channels of each next layer.
        ("reactor", 1, 4112 + 16_416 + 18_464 + 401_536),
    )
    def test_torso_has_expected_parameter_count(self, name, multiplier, expected):
        torso = torsos.TORSOS[name](multiplier, False, "float32")
        features = torso(tf.zeros([2, 84, 84, 4], tf.uint8))
        self.assertEqual(features.shape, [2, 256])
        self.assertEqual(_parameters(torso), expected)

    def test_dqn_has_three_convolutions_and_no_dense_layer(self):
        torso = torsos.TORSOS["dqn"](1, False, "float32")
        features = torso(tf.zeros([2, 84, 84, 4], tf.uint8))
        self.assertEqual(features.shape, [2, 7 * 7 * 64])
        self.assertCountEqual(
            [tuple(v.shape) for v in torso.trainable_variables],
            [(8, 8, 4, 32), (4, 4, 32, 64), (3, 3, 64, 64), (32,), (64,), (64,)],
        )

    def test_nature_adds_dense_layer(self):
        torso = torsos.TORSOS["nature"](1, False, "float32")
        features = torso(tf.zeros([2, 84, 84, 4], tf.uint8))
        self.assertEqual(features.shape, [2, 512])
        # 8x8x4x32, 4x4x32x64, 3x3x64x64 and 3136x512, each with biases.
        self.assertEqual(_parameters(torso), 8_224 + 32_832 + 36_928 + 1_606_144)

    def test_dqn_features_equal_reference(self):
        torso = torsos.TORSOS["dqn"](1, False, "float32")
        observation = np.random.default_rng(1).integers(0, 256, (3, 84, 84, 4), dtype=np.uint8)
        features = torso(tf.constant(observation))
        kernels = {v.shape[0]: v for v in torso.trainable_variables if v.shape.rank == 4}
        expected = tf.constant(observation / 255, tf.float32)
        for size, stride in ((8, 4), (4, 2), (3, 1)):  # Initial biases are zero.
            expected = tf.nn.relu(tf.nn.conv2d(expected, kernels[size], stride, "VALID"))
        np.testing.assert_allclose(features, tf.reshape(expected, [3, -1]), rtol=1e-4, atol=1e-5)
        self.assertBetween(np.mean(features == 0.0), 0.1, 0.9)

    def test_reactor_features_equal_reference(self):
        torso = torsos.TORSOS["reactor"](1, False, "float32")
        observation = np.random.default_rng(1).integers(0, 256, (3, 84, 84, 1), dtype=np.uint8)
        features = torso(tf.constant(observation))
        kernels = {v.shape[0]: v for v in torso.trainable_variables if v.shape.rank == 4}
        expected = tf.constant(observation / 255, tf.float32)
        for size, stride in ((8, 4), (4, 2), (3, 1)):  # Initial biases are zero.
            expected = tf.nn.conv2d(expected, kernels[size], stride, "VALID")
            expected = tf.concat([tf.nn.relu(expected), tf.nn.relu(-expected)], axis=-1)
        last = tf.reshape(expected, [3, -1]) @ torso._dense.kernel
        np.testing.assert_allclose(features[:, :128], np.maximum(last, 0), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(features[:, 128:], np.maximum(-last, 0), rtol=1e-4, atol=1e-4)

    @parameterized.parameters(("deep", 1), ("strided_deep", 2))
    def test_zero_residual_blocks_keep_inputs(self, name, first_stride):
        # Blocks with zero weights return their inputs.
        torso = torsos.TORSOS[name](1, False, "float32")
        observation = np.random.default_rng(1).integers(0, 256, (2, 16, 16, 4), dtype=np.uint8)
        torso(tf.constant(observation))
        expected = tf.constant(observation / 255, tf.float32)
        strides = (first_stride, 1, 1)
        for (convolution, blocks), stride in zip(torso._sections, strides, strict=True):
            for block in blocks:
                for variable in block.trainable_variables:
                    variable.assign(tf.zeros_like(variable))
            kernel = convolution.kernel
            expected = tf.nn.conv2d(expected, kernel, stride, "SAME")  # Initial biases are zero.
            expected = tf.nn.max_pool2d(expected, 3, 2, "SAME")
        flat = tf.reshape(tf.nn.relu(expected), [2, -1])
        self.assertGreater(np.abs(flat).max(), 0.1)
        np.testing.assert_allclose(
            torso(tf.constant(observation)),
            tf.nn.relu(flat @ torso._dense.kernel),
            rtol=1e-4,
            atol=1e-5,
        )

    def test_residual_block_equals_reference(self):
        block = torsos._ResidualBlock(3, "float32")
        inputs = tf.random.stateless_normal([2, 5, 5, 3], [0, 1])
        np.testing.assert_array_equal(block(inputs), inputs)  # A fresh block is the identity.
        first, second = (convolution.kernel for convolution in block._convolutions)
        second.assign(tf.random.stateless_normal(second.shape, [0, 2]))
        outputs = block(inputs)
        inside = tf.nn.conv2d(tf.nn.relu(inputs), first, 1, "SAME")
        inside = tf.nn.conv2d(tf.nn.relu(inside), second, 1, "SAME")
        np.testing.assert_allclose(outputs, inputs + inside, rtol=1e-4, atol=1e-5)

    @parameterized.parameters("shallow", "deep", "strided_deep", "dqn", "nature")
    def test_initial_features_have_unit_scale(self, name):
        tf.keras.utils.set_random_seed(1)
        torso = torsos.TORSOS[name](1, False, "float32")
        features = torso(tf.random.stateless_normal([4, 84, 84, 4], [0, 1]))
        # Values and logits are sums of features. With features near 20 the norm of the first
        # gradient is 10^7.
        self.assertBetween(tf.sqrt(tf.reduce_mean(features**2)), 0.2, 3.0)

    @parameterized.parameters(("deep", 4, [64, 128]), ("dqn", 2, [64, 128]))
    def test_channel_multiplier_widens_convolutions(self, name, multiplier, expected):
        torso = torsos.TORSOS[name](multiplier, False, "float32")
        torso(tf.zeros([1, 84, 84, 4], tf.uint8))
        widths = sorted({v.shape[-1] for v in torso.trainable_variables if v.shape.rank == 4})
        self.assertEqual(widths, expected)

    @parameterized.parameters(
        ("shallow", (84, 84, 4), False),
        ("shallow", (84, 84, 4), True),
        ("deep", (84, 84, 4), True),
        ("strided_deep", (84, 84, 4), True),
        ("dqn", (84, 84, 4), False),
        ("dqn", (84, 84, 4), True),
        ("nature", (84, 84, 4), False),
        ("reactor", (84, 84, 1), False),
        ("minatar", (10, 10, 6), False),
        ("flat", (10, 5, 1), False),
    )
    def test_bfloat16_is_close_to_float32(self, name, shape, center):
        observation = np.random.default_rng(1).integers(0, 256, (8, *shape), dtype=np.uint8)
        outputs = []
        for dtype in ("float32", "bfloat16"):
            tf.keras.utils.set_random_seed(1)
            torso = torsos.TORSOS[name](1, center, dtype)
            features = torso(tf.constant(observation))
            self.assertEqual(features.dtype.name, dtype)
            self.assertTrue(all(v.dtype == tf.float32 for v in torso.trainable_variables))
            outputs.append(tf.cast(features, tf.float32).numpy())
        np.testing.assert_allclose(*outputs, atol=0.05 * np.abs(outputs[0]).max())

    def test_uint8_images_are_scaled_to_one(self):
        torso = torsos.FlatTorso(1, False, "float32")
        torso(tf.zeros([1, 2, 2, 1], tf.uint8))
        kernel, bias = torso.trainable_variables
        kernel, bias = (kernel, bias) if kernel.shape.rank == 2 else (bias, kernel)
        bias.assign(tf.zeros_like(bias))
        features = torso(tf.fill([1, 2, 2, 1], tf.constant(255, tf.uint8)))
        np.testing.assert_allclose(
            features[0], tf.nn.relu(tf.reduce_sum(kernel, axis=0)), rtol=1e-5
        )

    def test_float_images_are_not_scaled(self):
        torso = torsos.FlatTorso(1, False, "float32")
        observation = tf.random.stateless_uniform([3, 2, 2, 1], [0, 1])
        features = torso(observation)
        expected = tf.nn.relu(tf.reshape(observation, [3, 4]) @ torso._dense.kernel)
        np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)

    @parameterized.parameters(("relu", tf.nn.relu), ("tanh", tf.tanh))
    def test_mlp_applies_activation_after_each_layer(self, name, activation):
        mlp = torsos.MLP((5, 2), name, "float32")
        vectors = tf.random.stateless_normal([4, 3], [0, 1])
        outputs = mlp(vectors)
        for layer in mlp._layers:
            vectors = activation(vectors @ layer.kernel)
        np.testing.assert_allclose(outputs, vectors, rtol=1e-5, atol=1e-6)

    @parameterized.parameters(("relu", 2.0), ("tanh", 1.0))
    def test_mlp_activation_sets_variance_of_weights(self, name, scale):
        mlp = torsos.MLP((400,), name, "float32")
        mlp(tf.zeros([1, 100]))
        self.assertAlmostEqual(np.var(mlp._layers[0].kernel) * 100, scale, delta=0.05 * scale)

    @parameterized.parameters(
        ("shallow", (84, 84, 4)),
        ("deep", (84, 84, 4)),
        ("strided_deep", (84, 84, 4)),
        ("dqn", (84, 84, 4)),
        ("nature", (84, 84, 4)),
        ("reactor", (84, 84, 1)),
        ("minatar", (10, 10, 6)),
        ("flat", (10, 5, 1)),
    )
    def test_centered_torso_ignores_brightness(self, name, shape):
        observation = np.random.default_rng(1).integers(0, 100, (4, *shape), dtype=np.uint8)
        offsets = np.array([0, 20, 80, 150], np.uint8)[:, None, None, None]
        differences = {}
        for center in (False, True):
            tf.keras.utils.set_random_seed(1)
            torso = torsos.TORSOS[name](1, center, "float32")
            dark, bright = (
                torso(tf.constant(observation)),
                torso(tf.constant(observation + offsets)),
            )
            differences[center] = np.abs(dark - bright).max()
        self.assertLess(differences[True], 1e-3)
        self.assertGreater(differences[False], 0.01)


if __name__ == "__main__":
    absltest.main()
