"""Tests encoding, normalisation and validation of nested observations."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.networks import observation_encoder, trunk_config
from testing import messages

N = 6
SPEC = {
    "image": observations.image_spec(10, 5, 2),
    "kind": specs.DiscreteArray(4),
    "level": specs.BoundedArray([], np.float32, 0, 1),
    "speed": specs.Array([3], np.float64),
    "text": types.TextSpec(4),
}
CONFIG = trunk_config.TrunkConfig(torso="flat", mlp_units=(8, 5))


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

    @parameterized.parameters("float32", "bfloat16")
    def test_features_of_all_leaves_are_concatenated(self, dtype):
        encoder = _encoder(dtype=dtype)
        features = encoder(_observation())
        text_units = encoder._encoders[-1](_observation()["text"]).shape[-1]
        self.assertEqual(features.shape, [N, 64 + text_units + 5])
        self.assertEqual(features.dtype.name, dtype)
        self.assertTrue(np.isfinite(tf.cast(features, tf.float32)).all())

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

    @parameterized.parameters(*SPEC)
    def test_change_of_any_leaf_changes_features(self, name):
        encoder, observation = _encoder(), _observation()
        changed = {**observation, name: _observation(seed=5)[name]}
        before, after = encoder(observation).numpy(), encoder(changed).numpy()
        self.assertGreater(np.abs(before - after).max(), 1e-4)

    def test_discrete_values_are_one_hot_and_numbers_unchanged(self):
        encoder = _encoder()
        observation = _observation()
        expected = np.concatenate(
            [
                np.eye(4)[observation["kind"]],
                observation["level"].numpy()[:, None],
                observation["speed"].numpy(),
            ],
            axis=-1,
        )
        leaves = [observation[name] for name in sorted(SPEC)]
        np.testing.assert_allclose(encoder._concatenate_vectors(leaves), expected, rtol=1e-6)

    def test_only_observed_vectors_update_moments(self):
        encoder, observation = _encoder(), _observation()
        encoder(observation)
        mean, variance = encoder.moments
        np.testing.assert_array_equal(mean, np.zeros(8))
        np.testing.assert_array_equal(variance, np.ones(8))
        mask = np.array([True, True, True, False, False, True])
        encoder.observe(observation, tf.constant(mask))
        np.testing.assert_allclose(mean[5:], observation["speed"].numpy()[mask].mean(0), rtol=1e-4)

    def test_images_are_normalised_by_observed_moments(self):
        config = dataclasses.replace(CONFIG, normalise_images=True)
        encoder, images = _encoder(SPEC["image"], config), _observation()["image"]
        before = encoder(images)
        encoder.observe(images, tf.ones([N], tf.bool))
        mean, variance = encoder.moments
        np.testing.assert_allclose(mean, images[0].numpy().ravel())
        # One observed image and 50 images of the prior.
        np.testing.assert_allclose(variance, np.full(100, 50 / 51 * (255 / 4) ** 2), rtol=1e-5)
        self.assertGreater(np.abs(encoder(images) - before).max(), 1e-2)
        other = _encoder(SPEC["image"], config)
        for moment, read in zip(other.moments, encoder.moments, strict=True):
            moment.assign(read)
        np.testing.assert_allclose(other(images), encoder(images), rtol=1e-4, atol=1e-5)

    def test_moments_cover_images_and_vectors(self):
        encoder = _encoder(config=dataclasses.replace(CONFIG, normalise_images=True))
        encoder.observe(_observation(), tf.ones([N], tf.bool))
        self.assertEqual([moment.shape[0] for moment in encoder.moments], [100, 100, 8, 8])

    def test_centering_with_normalisation_raises(self):
        with messages.raises(ValueError, "center_observation", "normalise_images"):
            dataclasses.replace(CONFIG, center_observation=True, normalise_images=True)

    def test_no_normalisation_has_no_moments(self):
        encoder = _encoder(config=trunk_config.TrunkConfig(torso="flat", normalise_vectors=False))
        encoder.observe(_observation(), tf.ones([N], tf.bool))
        self.assertEqual(encoder.moments, ())

    def test_single_leaf_is_not_fused(self):
        fused = dataclasses.replace(CONFIG, fusion_units=7)
        self.assertEqual(_encoder(SPEC["speed"], fused)(_observation()["speed"]).shape, [N, 5])
        self.assertEqual(_encoder(SPEC["image"])(_observation()["image"]).shape, [N, 64])

    def test_dynamic_batch_size_is_supported(self):
        encoder, observation = _encoder(), _observation()
        signature = tf.nest.map_structure(
            lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), observation
        )
        call = tf.function(encoder, input_signature=[signature])
        np.testing.assert_allclose(call(observation), encoder(observation), rtol=1e-4, atol=1e-5)

    def test_unsupported_shape_raises(self):
        spec = {"camera": SPEC["image"], "board": specs.Array([3, 4], np.float32)}
        with messages.raises(ValueError, "board", "[3, 4]"):
            _encoder(spec)


if __name__ == "__main__":
    absltest.main()
