"""Tests encoding, normalisation and validation of nested observations."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.networks import observation_encoder, trunk_config
from testing import messages, numpy_reference

N = 6
SPEC = {
    "image": observations.image_spec(10, 5, 2),
    "kind": specs.DiscreteArray(4),
    "level": specs.BoundedArray([], np.float32, 0, 1),
    "speed": specs.Array([3], np.float64),
    "text": types.TextSpec(4),
}
CONFIG = trunk_config.TrunkConfig(torso="flat", mlp_units=(8, 5))
WORDS = np.array(
    [[5, 1000, 5, 7, 2, 9], [3, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [5, 0, 1000, 5, 0, 0]],
    np.int32,
)


def _observation(seed: int = 0) -> dict[str, tf.Tensor]:
    generator = np.random.default_rng(seed)
    return {
        "image": tf.constant(generator.integers(0, 256, [N, 10, 5, 2]), tf.uint8),
        "kind": tf.constant(generator.integers(0, 4, N), tf.int32),
        "level": tf.constant(generator.uniform(size=N), tf.float32),
        "speed": tf.constant(generator.normal(size=[N, 3]), tf.float64),
        "text": tf.constant(generator.integers(1, 1000, [N, 4]), tf.int32),
    }


def _encoder(spec=SPEC, config=CONFIG, dtype="float32"):
    tf.keras.utils.set_random_seed(1)
    return observation_encoder.ObservationEncoder(spec, config, dtype)


class ObservationEncoderTest(parameterized.TestCase):
    def test_unused_torso_of_a_user_is_checked(self):
        vector = specs.Array([3], np.float32)
        config = dataclasses.replace(CONFIG, torso="laser_tf.networks.torsos:Torsoo")
        with messages.raises(errors.ConfigError, "agent.torso", config.torso, "Torso"):
            _encoder(vector, config)
        config = dataclasses.replace(CONFIG, torso="laser_tf.networks.torsos:MLP")
        with self.assertLogs(level="WARNING") as logs:
            _encoder(vector, config)
        messages.assert_names(logs.output[0], f"agent.torso={config.torso}")

    @parameterized.parameters(*trunk_config.TORSOS)
    def test_min_image_size_is_accepted_and_smaller_raises(self, torso):
        side = trunk_config.MIN_IMAGE_SIZES[torso]
        config = dataclasses.replace(CONFIG, torso=torso)
        encoder = _encoder(observations.image_spec(side, side, 2), config)
        image = tf.zeros([1, side, side, 2], tf.uint8)
        self.assertGreater(encoder(image).shape[1], 0)
        self.assertNotIn(0, [size for weights in encoder.variables for size in weights.shape])
        if side > 1:
            with messages.raises(ValueError, "agent.torso", torso):
                _encoder(observations.image_spec(side, side - 1, 2), config)

    def test_categories_are_one_hot_one_after_the_other(self):
        spec = types.ProductSpec([specs.DiscreteArray(3), specs.DiscreteArray(2)], "kinds")
        encoder = _encoder((spec, specs.Array([], np.float32)))
        kinds = tf.constant([[2, 1], [0, 0]], tf.int32)
        np.testing.assert_array_equal(
            encoder._concatenate_vectors([kinds, tf.constant([7.0, 8.0])]),
            [[0, 0, 1, 0, 1, 7], [1, 0, 0, 1, 0, 8]],
        )
        self.assertEqual(encoder((kinds, tf.zeros([2]))).shape, [2, 5])

    @parameterized.product(dtype=("float32", "bfloat16"), normalised=(True, False))
    def test_features_are_those_of_all_leaves(self, dtype, normalised):
        config = dataclasses.replace(CONFIG, normalise_vectors=normalised)
        encoder, observation = _encoder(config=config, dtype=dtype), _observation()
        features = encoder(observation)
        image, *_, text = encoder._encoders
        # Discrete values are one-hot, numbers and vectors are unchanged.
        vectors = [np.eye(4)[observation["kind"]], observation["level"][:, None]]
        vectors = np.concatenate([*vectors, observation["speed"]], axis=-1).astype(np.float32)
        parts = (image(observation["image"]), encoder._mlp(vectors), text(observation["text"]))
        expected = tf.concat([tf.cast(part, dtype) for part in (parts[0], parts[2], parts[1])], -1)
        self.assertEqual((features.shape, features.dtype.name), ([N, 64 + 64 + 5], dtype))
        np.testing.assert_allclose(
            *(tf.cast(x, tf.float32) for x in (features, expected)), rtol=1e-2, atol=1e-4
        )

    def test_fusion_represents_interactions_between_leaves(self):
        """Tests that features without fusion are a sum of functions of single leaves."""
        one, other = _observation(), _observation(seed=5)
        mixed = [{**one, "image": other["image"]}, {**other, "image": one["image"]}]
        for units, additive in ((0, True), (7, False)):
            encoder = _encoder(config=dataclasses.replace(CONFIG, fusion_units=units))
            together = encoder(one) + encoder(other)
            swapped = encoder(mixed[0]) + encoder(mixed[1])
            self.assertEqual(np.allclose(together, swapped, atol=1e-4), additive)
        self.assertEqual(encoder(one).shape, [N, 7])
        # A single leaf is not fused.
        fused = dataclasses.replace(CONFIG, fusion_units=7)
        self.assertEqual(_encoder(SPEC["speed"], fused)(one["speed"]).shape, [N, 5])

    def test_masked_observations_do_not_update_moments(self):
        encoder, observation = _encoder(), _observation()
        encoder(observation)
        mean, variance = encoder.moments
        np.testing.assert_array_equal(mean, np.zeros(8))
        np.testing.assert_array_equal(variance, np.ones(8))
        mask = np.array([True, True, True, False, False, True])
        encoder.update_normalisers(observation, tf.constant(mask))
        np.testing.assert_allclose(mean[5:], observation["speed"].numpy()[mask].mean(0), rtol=1e-4)
        before = encoder(observation)
        mean.assign_add(tf.ones([8]))
        self.assertGreater(np.abs(encoder(observation) - before).max(), 1e-3)

    def test_images_are_normalised_by_observed_moments(self):
        encoder = _encoder(config=dataclasses.replace(CONFIG, image_normalisation="running"))
        observation = _observation()
        before = encoder(observation)
        encoder.update_normalisers(observation, tf.ones([N], tf.bool))
        self.assertEqual([moment.shape[0] for moment in encoder.moments], [100, 100, 8, 8])
        mean, variance = encoder.moments[:2]
        np.testing.assert_allclose(mean, observation["image"][0].numpy().ravel())
        # One observed image and 50 images of the prior.
        np.testing.assert_allclose(variance, np.full(100, 50 / 51 * (255 / 4) ** 2), rtol=1e-5)
        self.assertGreater(np.abs(encoder(observation) - before)[:, :64].max(), 1e-2)

    def test_no_normalisation_has_no_moments(self):
        encoder = _encoder(config=dataclasses.replace(CONFIG, normalise_vectors=False))
        encoder.update_normalisers(_observation(), tf.ones([N], tf.bool))
        self.assertEqual(encoder.moments, ())

    def test_invalid_value_raises(self):
        spec = {"camera": SPEC["image"], "board": specs.Array([3, 4], np.float32)}
        with messages.raises(ValueError, "board", "[3, 4]"):
            _encoder(spec)
        with messages.raises(ValueError, "image_normalisation", "running"):
            dataclasses.replace(CONFIG, image_normalisation="batch")
        for units in ((0,), (20_000,)):
            with messages.raises(ValueError, "mlp_units", units):
                dataclasses.replace(CONFIG, mlp_units=units)


class InstructionEncoderTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        tf.keras.utils.set_random_seed(1)
        self._encoder = observation_encoder.InstructionEncoder()
        self._encoder(tf.constant(WORDS))
        self._cell = self._encoder._cell
        bias = self._cell._input.bias
        bias.assign(tf.random.normal(bias.shape))  # A nonzero bias reveals updates by padding.

    def test_encoding_equals_reference_loop_without_padding(self):
        encodings = self._encoder(tf.constant(WORDS))
        self.assertEqual((encodings.shape, encodings.dtype), ([4, 64], tf.float32))
        embedding = self._encoder._embedding.numpy().astype(float)
        for encoding, instruction in zip(encodings, WORDS, strict=True):
            output, memory = np.zeros(64), np.zeros(64)
            for word in instruction[instruction > 0]:
                output, memory = numpy_reference.lstm_step(
                    self._cell, embedding[word], output, memory
                )
            np.testing.assert_allclose(encoding, output, rtol=1e-4, atol=1e-6)

    def test_compiled_dynamic_batch_equals_eager(self):
        signature = [tf.TensorSpec([None, 6], tf.int32)]
        for jit_compile in (False, True):
            encode = tf.function(self._encoder, signature, jit_compile=jit_compile)
            expected = self._encoder(tf.constant(WORDS))[:3]
            np.testing.assert_allclose(encode(WORDS[:3]), expected, rtol=1e-4, atol=1e-6)

    def test_gradient_reaches_words_but_not_padding(self):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(self._encoder(tf.constant(WORDS))))
        variables = self._encoder.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            # The optimiser does not support IndexedSlices.
            self.assertIsInstance(gradient, tf.Tensor)
            self.assertGreater(np.abs(gradient).max(), 0.0)
            if "embedding" in variable.name:
                learnt = np.flatnonzero(np.abs(gradient).max(axis=1))
                np.testing.assert_array_equal(learnt, [2, 3, 5, 7, 9, 1000])


if __name__ == "__main__":
    absltest.main()
