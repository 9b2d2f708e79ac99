"""Tests of canonical observations: the table of docs/environments.md, and rejected specs."""

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs
from gymnasium import spaces

from laser_tf import types
from laser_tf.environments import canonical_observations, faults, gymnasium_adapter
from testing import messages

LENGTH = 4  # Words of a text.
CATEGORIES = canonical_observations.CategoryArray([2], np.int64, 0, [1, 4])


def observation_of(spec):
    return canonical_observations.Observation(spec, LENGTH, num_actions=3)


def of_space(space):
    return observation_of(gymnasium_adapter.spec_of(space, "observation"))


class ObservationTest(parameterized.TestCase):
    @parameterized.parameters(
        (spaces.Box(0, 255, [5, 4, 3], np.uint8), [5, 4, 3], np.uint8),
        (spaces.Box(0, 255, [5, 4], np.uint8), [5, 4, 1], np.uint8),
        (spaces.Box(0, 1, [5, 4, 3], np.float64), [5, 4, 3], np.float32),
        (spaces.Box(0, 9, [5, 4, 3], np.int64), [5, 4, 3], np.float32),
        (spaces.Box(-np.inf, np.inf, [7], np.float64), [7], np.float32),
        (spaces.Box(0, 255, [7], np.uint8), [7], np.float32),
        (spaces.Box(-1, 1, [5, 4], np.float32), [20], np.float32),
        (spaces.MultiBinary([2, 3]), [6], np.float32),
        (spaces.MultiDiscrete([3, 5]), [2], np.int32),
        (spaces.MultiDiscrete([[3, 255]], np.uint8), [2], np.int32),
        (spaces.Discrete(3), [], np.int32),
        (spaces.Discrete(3, start=-4), [], np.int32),
    )
    def test_space_becomes_an_array(self, space, shape, dtype):
        observation = of_space(space)
        self.assertEqual(
            (list(observation.spec.shape), observation.spec.dtype), (shape, np.dtype(dtype))
        )
        is_discrete = isinstance(space, spaces.Discrete)
        self.assertEqual(isinstance(observation.spec, specs.DiscreteArray), is_discrete)
        if isinstance(space, spaces.MultiDiscrete):
            counts = [part.num_values for part in observation.spec.parts]
            self.assertEqual(counts, space.nvec.reshape(-1).tolist())
        space.seed(3)
        for _ in range(20):
            sample = space.sample()
            begun = sample - space.start if is_discrete else sample
            (leaf,) = observation(begun)
            observation.spec.validate(leaf)
            np.testing.assert_array_equal(
                leaf.reshape(-1), np.asarray(begun).reshape(-1).astype(dtype)
            )

    @parameterized.parameters(
        (specs.Array([5, 4], bool), np.eye(5, 4, dtype=bool), [5, 4, 1], 255),
        (specs.Array([], bool), True, [], 1.0),
        (specs.BoundedArray([], np.int64, 0, 9), 7, [], 7.0),
        (specs.Array([2], np.float32), [0.5, 2], [2], 2.0),
    )
    def test_spec_of_dm_env_becomes_an_array(self, spec, value, shape, greatest):
        observation = observation_of(spec)
        (leaf,) = observation(value)
        observation.spec.validate(leaf)
        self.assertEqual((list(leaf.shape), leaf.max()), (shape, greatest))

    def test_text_becomes_word_ids(self):
        observation = of_space(spaces.Text(100))
        self.assertEqual(observation.spec, types.TextSpec(LENGTH))
        (leaf,) = observation("Open the door!")
        np.testing.assert_array_equal(
            leaf, canonical_observations.encode_text("open the door", LENGTH)
        )
        for value in (np.array("a b"), b"a b", np.str_("a b")):
            np.testing.assert_array_equal(
                observation(value)[0], canonical_observations.encode_text("a b", LENGTH)
            )
        with messages.raises(ValueError, 5, "environment.text_length=5"):
            observation("a b c d e")
        with messages.raises(ValueError):
            observation(3)

    def test_nest_keeps_structure_and_order_of_leaves(self):
        space = spaces.Dict(
            z=spaces.Box(0, 1, [2], np.float32),
            a=spaces.Tuple([spaces.Discrete(3, start=5), spaces.Dict(b=spaces.Discrete(2))]),
        )
        spec = gymnasium_adapter.spec_of(space, "observation")
        offsets = [5, 0, 0]
        observation = canonical_observations.Observation(spec, LENGTH, offsets)
        self.assertEqual(list(observation.spec), ["a", "z"])
        self.assertEqual(observation.offsets(), offsets)
        leaves = observation({"z": np.array([0.25, 0.5]), "a": (7, {"b": 1})})
        self.assertEqual([leaf.tolist() for leaf in leaves], [2, 1, [0.25, 0.5]])

    def test_word_ids_are_stable(self):
        # crc32 of "go", "to", "the", "red" and "ball", or checkpoints would mean other words.
        ids = canonical_observations.encode_text("Go to, the  RED ball.", 7)
        self.assertEqual(ids.dtype, np.int32)
        np.testing.assert_array_equal(ids, [775, 757, 79, 456, 380, 0, 0])
        np.testing.assert_array_equal(canonical_observations.encode_text("", 3), 0)

    def test_word_ids_cover_the_vocabulary(self):
        words = " ".join(f"word{number}" for number in range(5000))
        ids = canonical_observations.encode_text(words, 5000)
        self.assertEqual((ids.min(), ids.max()), (1, types.VOCABULARY_SIZE - 1))
        self.assertGreater(len(set(ids.tolist())), 950)

    @parameterized.parameters(
        (spaces.Graph(spaces.Discrete(2), None), ("Graph",)),
        (spaces.Dict(a=spaces.Sequence(spaces.Discrete(2))), ("['a']", "Sequence")),
        (spaces.Box(0, 1, [2, 3, 4, 5]), ("[2, 3, 4, 5]",)),
        (spaces.Tuple([spaces.Box(0, 1, [0])]), ("[0]",)),
        (spaces.Dict({}), ()),
        (spaces.Dict(action_mask=spaces.MultiBinary(3)), ("action_mask",)),
        (spaces.MultiDiscrete(np.zeros(0, int)), ("[0]",)),
        (spaces.Box(0, 255, [12, 84, 84], np.uint8), ("[12, 84, 84]", "channels")),
        (spaces.Box(0, 255, [3, 60, 80], np.uint8), ("[3, 60, 80]", "channels")),
        (spaces.Dict(a=spaces.Discrete(2**33)), ("['a']", "8589934592")),
        (spaces.Dict(a=spaces.MultiDiscrete([2, 2**33])), ("['a']", "8589934594")),
    )
    def test_unsupported_space_is_rejected(self, space, named):
        with messages.raises(faults.UnsupportedSpaceError, *named):
            of_space(space)

    @parameterized.parameters(
        (specs.Array([2], np.complex64), ("complex64",)),
        ({"a": [3]}, ("['a']", "[0]")),
        (None, ("NoneType",)),
    )
    def test_unsupported_spec_is_rejected(self, spec, named):
        with messages.raises(faults.UnsupportedSpaceError, *named):
            observation_of(spec)

    @parameterized.parameters(
        (specs.Array([2], np.float32), np.zeros(3), ("[3]", "[2]")),
        (specs.Array([2], np.float32), ["a", "b"], ("<U1", "float32")),
        (specs.Array([2], np.int64), [0.5, 1], ("float64", "int64")),
        (specs.Array([2, 2], np.uint8), np.zeros([2, 2], int), ("int64", "uint8")),
        (specs.DiscreteArray(3), 3, ("3", "0", "2")),
        (CATEGORIES, np.array([2, 0]), ("[2, 0]", "[1, 4]")),
        ({"a": specs.DiscreteArray(3)}, {"b": 1}, ("['b']", "['a']")),
        ({"a": specs.DiscreteArray(3)}, 1, ()),
        ((specs.DiscreteArray(3),), (1, 2), ("2", "1")),
        (specs.DiscreteArray(3), None, ("object", "int32")),
    )
    def test_value_that_violates_its_spec_is_named(self, spec, value, named):
        with messages.raises(ValueError, *named):
            observation_of(spec)(value)

    @parameterized.parameters(({2: 5, 10: 3}, "2, 10"), ({"a": 5, 1: 3}, "'a', 1"))
    def test_keys_other_than_texts_are_rejected(self, sizes, shown):
        # TensorFlow stores the structure of a batch, which cannot have numbers as keys.
        spec = {key: specs.DiscreteArray(size) for key, size in sizes.items()}
        with messages.raises(faults.UnsupportedSpaceError, shown):
            observation_of(spec)


if __name__ == "__main__":
    absltest.main()
