import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import language

INSTRUCTIONS = np.array(
    [[5, 1000, 5, 7, 2, 9], [3, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [5, 1000, 5, 0, 0, 0]],
    np.int32,
)


def _encoder(seed=1):
    tf.keras.utils.set_random_seed(seed)
    encoder = language.InstructionEncoder()
    encoder(tf.constant(INSTRUCTIONS))
    bias = encoder._cell._input.bias
    bias.assign(tf.random.normal(bias.shape))  # A nonzero bias reveals updates by padding.
    return encoder


def _weights(encoder):
    cell = encoder._cell
    return {
        "embedding": encoder._embedding,
        "input_kernel": cell._input.kernel,
        "state_kernel": cell._recurrent.kernel,
        "bias": cell._input.bias,
    }


def _naive(encoder, words):
    """Encodes words with a float64 loop, without padding."""
    weights = {name: value.numpy().astype(float) for name, value in _weights(encoder).items()}
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    output, memory = np.zeros(64), np.zeros(64)
    for word in words:
        gates = weights["embedding"][word] @ weights["input_kernel"]
        gates = gates + output @ weights["state_kernel"] + weights["bias"]
        admit, forget, candidate, expose = np.split(gates, 4)
        memory = sigmoid(forget + 1) * memory + sigmoid(admit) * np.tanh(candidate)
        output = sigmoid(expose) * np.tanh(memory)
    return output


class InstructionEncoderTest(parameterized.TestCase):
    def test_encoding_equals_reference_loop(self):
        encoder = _encoder()
        encodings = encoder(tf.constant(INSTRUCTIONS))
        self.assertEqual((encodings.shape, encodings.dtype), ([4, 64], tf.float32))
        for encoding, instruction in zip(encodings, INSTRUCTIONS, strict=True):
            words = instruction[instruction > 0]
            np.testing.assert_allclose(encoding, _naive(encoder, words), rtol=1e-4, atol=1e-6)

    def test_encoding_equals_keras_cell(self):
        encoder, cell = _encoder(), tf.keras.layers.LSTMCell(64, unit_forget_bias=True)
        weights = _weights(encoder)
        cell.build([None, 20])
        forget_one = tf.concat([tf.zeros([64]), tf.ones([64]), tf.zeros([128])], axis=0)
        cell.set_weights(
            [weights["input_kernel"], weights["state_kernel"], weights["bias"] + forget_one]
        )
        state = [tf.zeros([1, 64])] * 2
        for word in INSTRUCTIONS[0]:
            _, state = cell(weights["embedding"][word][None], state)
        np.testing.assert_allclose(
            encoder(tf.constant(INSTRUCTIONS))[0], state[0][0], rtol=1e-4, atol=1e-6
        )

    def test_padding_keeps_encoding(self):
        encoder = _encoder()
        short = encoder(tf.constant(INSTRUCTIONS[[1, 3], :3]))
        padded = encoder(tf.constant(np.pad(INSTRUCTIONS[[1, 3]], [[0, 0], [0, 5]])))
        np.testing.assert_allclose(padded, short, rtol=1e-6, atol=1e-7)

    def test_gap_between_words_keeps_encoding(self):
        encodings = _encoder()(tf.constant([[5, 0, 0, 7], [5, 7, 0, 0]]))
        np.testing.assert_allclose(encodings[0], encodings[1], rtol=1e-6, atol=1e-7)

    def test_empty_instruction_is_zero(self):
        encodings = _encoder()(tf.constant(INSTRUCTIONS)).numpy()
        np.testing.assert_array_equal(encodings[2], np.zeros(64))
        self.assertTrue(encodings[[0, 1, 3]].any(axis=1).all())

    def test_word_order_changes_encoding(self):
        encodings = _encoder()(tf.constant([[1, 2], [2, 1]]))
        self.assertGreater(np.abs(encodings[0] - encodings[1]).max(), 0.01)

    def test_encoder_has_expected_parameter_count(self):
        count = sum(int(np.prod(v.shape)) for v in _encoder().trainable_variables)
        self.assertEqual(count, 1001 * 20 + (20 + 64 + 1) * 4 * 64)

    def test_gradient_reaches_words_but_not_padding(self):
        encoder = _encoder()
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(encoder(tf.constant(INSTRUCTIONS))))
        gradients = tape.gradient(loss, encoder.trainable_variables)
        for variable, gradient in zip(encoder.trainable_variables, gradients, strict=True):
            self.assertIsInstance(
                gradient, tf.Tensor
            )  # The optimiser does not support IndexedSlices.
            self.assertGreater(np.abs(gradient).max(), 0.0)
            if "embedding" in variable.name:
                learnt = np.flatnonzero(np.abs(gradient).max(axis=1))
                np.testing.assert_array_equal(learnt, [2, 3, 5, 7, 9, 1000])

    def test_compiled_encoding_equals_eager(self):
        encoder = _encoder()
        compiled = tf.function(encoder, jit_compile=True)
        np.testing.assert_allclose(
            compiled(tf.constant(INSTRUCTIONS)),
            encoder(tf.constant(INSTRUCTIONS)),
            rtol=1e-4,
            atol=1e-6,
        )

    def test_dynamic_batch_size_is_supported(self):
        encoder = _encoder()
        graph = tf.function(encoder, input_signature=[tf.TensorSpec([None, 6], tf.int32)])
        np.testing.assert_allclose(
            graph(INSTRUCTIONS[:3]), encoder(tf.constant(INSTRUCTIONS))[:3], rtol=1e-4, atol=1e-6
        )


if __name__ == "__main__":
    absltest.main()
