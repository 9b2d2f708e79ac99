"""Convolutions with large strides, whose filters' gradients are quick on a CPU.

TensorFlow's own gradient of IMPALA's first layer (8x8, stride 4, 4 channels) takes longer on a CPU
with AVX2 than the rest of the learner's update.
"""

import tensorflow as tf


class StridedConvolution(tf.keras.layers.Conv2D):
    """Keras' Conv2D without padding, whose filter is a multiple of its stride wide.

    Outputs, variables and the inputs' gradient are Keras'; the filter's gradient is another order
    of the same sum, taken in float32 where there is no GPU. Elsewhere all is Keras'.
    """

    def convolution_op(self, inputs: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """Inputs [N, H, W, C] and kernel [K, K, C, O] -> [N, H', W', O]."""
        if self.compute_dtype != "float32" or tf.config.list_physical_devices("GPU"):
            return super().convolution_op(inputs, kernel)
        return _convolve(inputs, tf.convert_to_tensor(kernel), self.strides[0])


def _convolve(inputs: tf.Tensor, kernel: tf.Tensor, stride: int) -> tf.Tensor:
    @tf.custom_gradient
    def convolve(inputs: tf.Tensor, kernel: tf.Tensor) -> tuple:
        def gradients(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            of_inputs = tf.nn.conv2d_transpose(upstream, kernel, tf.shape(inputs), stride, "VALID")
            return of_inputs, _of_filter(inputs, kernel.shape, upstream, stride)

        return tf.nn.conv2d(inputs, kernel, stride, "VALID"), gradients

    return convolve(inputs, kernel)


def _of_filter(
    inputs: tf.Tensor, shape: tf.TensorShape, upstream: tf.Tensor, stride: int
) -> tf.Tensor:
    """A filter's gradient as one product of matrices.

    With blocks of stride x stride pixels as channels, the convolution has stride 1 and a filter of
    m x m blocks. Block (i, j) of the filter meets block (h + i, w + j) of the inputs where output
    (h, w) is made, so that its gradient is the sum, over all blocks of the inputs, of block times
    the upstream gradient moved by (i, j).

    Args:
      inputs: float32 [N, H, W, C].
      shape: the filter's, [m * stride, m * stride, C, O].
      upstream: float32 [N, H', W', O].
      stride: pixels.

    Returns:
      float32 [m * stride, m * stride, C, O].
    """
    size, _, channels, outputs = shape
    m = size // stride
    rows, columns = (length + m - 1 for length in upstream.shape[1:3])  # blocks that are met
    met = inputs[:, : rows * stride, : columns * stride]
    met = tf.reshape(met, [-1, stride, columns, stride * channels])
    blocks = tf.transpose(met, [0, 2, 1, 3])  # of N * rows
    moved = tf.concat(
        [
            tf.pad(upstream, [[0, 0], [i, m - 1 - i], [j, m - 1 - j], [0, 0]])
            for i in range(m)
            for j in range(m)
        ],
        axis=-1,
    )
    product = tf.matmul(
        tf.reshape(blocks, [-1, stride * stride * channels]),
        tf.reshape(moved, [-1, m * m * outputs]),
        transpose_a=True,
    )
    product = tf.reshape(product, [stride, stride, channels, m, m, outputs])
    return tf.reshape(tf.transpose(product, [3, 0, 4, 1, 2, 5]), shape)
