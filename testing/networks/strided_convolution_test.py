"""The strided convolution against Keras' own."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import strided_convolution


class StridedConvolutionTest(parameterized.TestCase):
    def _gradients(self, layer, inputs, upstream):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs)
            loss = tf.reduce_sum(tf.cast(outputs, tf.float32) * upstream)
        return outputs, *tape.gradient(loss, [inputs, *layer.trainable_variables])

    @parameterized.product(
        (
            {"shape": (3, 84, 84, 4), "size": 8, "stride": 4},  # the first layer on Atari
            {"shape": (3, 20, 20, 2), "size": 4, "stride": 2},  # the second
            {"shape": (2, 31, 23, 3), "size": 9, "stride": 3},  # pixels left over at the edges
            {"shape": (2, 17, 12, 1), "size": 4, "stride": 4},  # blocks that are met once
        ),
        compiled=(False, True),
    )
    def test_outputs_and_gradients_are_keras(self, shape, size, stride, compiled):
        random = np.random.default_rng(1)
        layers = [
            kind(5, size, stride, "valid")
            for kind in (strided_convolution.StridedConvolution, tf.keras.layers.Conv2D)
        ]
        inputs = tf.constant(random.normal(size=shape), tf.float32)
        upstream = random.normal(size=layers[0](inputs).shape).astype(np.float32)
        layers[1](inputs)
        layers[1].set_weights(layers[0].get_weights())
        results = []
        for layer in layers:
            run = tf.function(self._gradients, jit_compile=compiled, autograph=False)
            results.append(run(layer, inputs, upstream))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)

    def test_its_own_gradient_is_taken_in_float32_alone(self):
        for dtype, own in (("float32", True), ("mixed_bfloat16", False)):
            layer = strided_convolution.StridedConvolution(
                2, 4, 2, dtype=tf.keras.mixed_precision.Policy(dtype)
            )
            layer.build((None, 8, 8, 1))
            run = tf.function(self._gradients, autograph=False).get_concrete_function(
                layer, tf.zeros([1, 8, 8, 1]), tf.zeros([1, 3, 3, 2])
            )
            operations = {operation.type for operation in run.graph.get_operations()}
            self.assertEqual("Conv2DBackpropFilter" not in operations, own, dtype)

    def test_a_batch_of_any_size(self):
        layer = strided_convolution.StridedConvolution(2, 4, 2)
        layer.build((None, 8, 8, 1))
        signature = [tf.TensorSpec([None, 8, 8, 1]), tf.TensorSpec([None, 3, 3, 2])]
        run = tf.function(
            lambda inputs, upstream: self._gradients(layer, inputs, upstream),
            input_signature=signature,
            autograph=False,
        )
        for size in (1, 5):
            _, of_inputs, *_ = run(tf.ones([size, 8, 8, 1]), tf.ones([size, 3, 3, 2]))
            self.assertEqual(of_inputs.shape, [size, 8, 8, 1])


if __name__ == "__main__":
    absltest.main()
