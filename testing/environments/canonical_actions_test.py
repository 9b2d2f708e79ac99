"""Tests of canonical actions: the table of docs/environments.md, and rejected specs."""

import pickle

import numpy as np
import tree
from absl.testing import absltest, parameterized
from dm_env import specs
from gymnasium import spaces

from laser_tf import types
from laser_tf.environments import canonical_actions, faults, gymnasium_adapter
from testing import messages

_EXTREMES = np.finfo(np.float32).min, np.finfo(np.float32).max  # Of TF-Agents, without bounds.


class ActionTest(parameterized.TestCase):
    @parameterized.parameters(
        (spaces.Discrete(3), [0, 1, 2]),
        (spaces.Discrete(3, start=-1), [-1, 0, 1]),
        (spaces.Box(4, 6, [], np.int64), [4, 5, 6]),
    )
    def test_integer_counts_from_zero(self, space, expected):
        action = canonical_actions.Action(gymnasium_adapter.action_spec_of(space))
        self.assertEqual(action.spec, specs.DiscreteArray(3, np.int32, "action"))
        sent = [action(np.int32(number)) for number in range(3)]
        self.assertEqual(sent, expected)
        self.assertTrue(all(map(space.contains, sent)))

    @parameterized.parameters(
        (specs.BoundedArray([2, 3], np.float64, -1, [[1, 2, 3], [4, 5, 6]]), 6),
        (specs.BoundedArray([], np.float32, -0.1, 0.1), 1),
        (specs.BoundedArray([2], np.float64, -0.1, 0.7), 2),
    )
    def test_floats_get_the_native_shape_and_bounds(self, own, size):
        action = canonical_actions.Action(own)
        self.assertEqual((action.spec.shape, action.spec.dtype), ((size,), np.float32))
        for canonical in (action.spec.minimum, action.spec.maximum):
            own.validate(action(np.asarray(canonical)))  # float32 may round beyond the bounds
        if size == 6:
            np.testing.assert_array_equal(
                action(np.arange(-1, 0, 1 / 6, dtype=np.float32)).shape, (2, 3)
            )

    @parameterized.parameters(
        (spaces.MultiDiscrete([2, 3], start=[5, -1]), [0, 2], [5, 1], np.int32),
        (spaces.MultiDiscrete([[2], [3]], np.uint8), [1, 2], [[1], [2]], np.int32),
        (spaces.MultiBinary([2, 2]), [0, 1, 1, 0], [[0, 1], [1, 0]], np.int32),
        (spaces.Box(-128, 127, [2], np.int8), [0, 255], [-128, 127], np.int32),
        (
            spaces.Tuple([spaces.Discrete(2, start=4), spaces.Box(-1, 1, [1, 2])]),
            [1, 0.5, -1],
            (5, [[0.5, -1]]),
            np.float32,
        ),
        (
            spaces.Dict(
                z=spaces.Box(0, 0.1, [], np.float64),
                a=spaces.Dict(y=spaces.MultiBinary(2), x=spaces.Discrete(9)),
            ),
            [8, 1, 0, 0.1],
            {"a": {"x": 8, "y": [1, 0]}, "z": 0.1},
            np.float32,
        ),
    )
    def test_parts_follow_each_other_in_one_vector(self, space, canonical, expected, dtype):
        action = canonical_actions.Action(gymnasium_adapter.action_spec_of(space))
        self.assertIsInstance(action.spec, types.ProductSpec)
        self.assertEqual(action.spec.dtype, dtype)
        self.assertEqual(pickle.loads(pickle.dumps(action.spec)), action.spec)
        sent = action(np.array(canonical, dtype))
        self.assertTrue(space.contains(sent))
        tree.map_structure_up_to(
            sent, lambda one, other: np.testing.assert_allclose(one, other, 1e-6), sent, expected
        )
        for bound in (action.spec.minimum, action.spec.maximum):
            self.assertTrue(space.contains(action(bound)))

    @parameterized.parameters(
        (spaces.MultiDiscrete([5], start=[2]), specs.DiscreteArray(5, np.int32, "action")),
        (spaces.Dict(a=spaces.Discrete(5)), specs.DiscreteArray(5, np.int32, "action")),
        (
            spaces.Dict(b=spaces.Box(-2, 2, [2]), a=spaces.Box(0, 1, [], np.float64)),
            specs.BoundedArray([3], np.float32, [0, -2, -2], [1, 2, 2]),
        ),
    )
    def test_nest_that_agents_need_not_split_is_one_action(self, space, expected):
        action = canonical_actions.Action(gymnasium_adapter.action_spec_of(space))
        self.assertNotIsInstance(action.spec, types.ProductSpec)
        self.assertEqual(isinstance(action.spec, specs.DiscreteArray), not expected.shape)
        expected.validate(action.spec.minimum)
        np.testing.assert_array_equal(action.spec.maximum, expected.maximum)
        self.assertTrue(space.contains(action(action.spec.maximum)))

    @parameterized.parameters(
        (spaces.Dict(a=spaces.Tuple([spaces.Text(3)])), ("['a'][0]", "Text")),
        (spaces.Dict(a=spaces.Box(-1, np.inf, [1])), ("['a']", "[inf]")),
        (spaces.Dict({}), ()),
        (spaces.MultiDiscrete([6_000, 5_000]), ("11,000", "10,000")),
        (spaces.Box(-np.inf, np.inf, [2]), ("[-inf, -inf]", "[inf, inf]")),
        (spaces.Box(-1e300, 1e300, [1], np.float64), ("[-inf]", "[inf]")),
        (spaces.Box(1, 1, [1], np.float32), ("[1.0]",)),
        (spaces.Box(0, 10**6, [], np.int64), ("1000001", "1", "10,000")),
    )
    def test_unsupported_space_is_rejected(self, space, named):
        with messages.raises(faults.UnsupportedSpaceError, *named):
            canonical_actions.Action(gymnasium_adapter.action_spec_of(space))

    @parameterized.parameters(
        ({"a": [specs.StringArray([])]}, ("['a'][0]", "object")),
        ({2: specs.DiscreteArray(2), "a": specs.DiscreteArray(2)}, ("2, 'a'",)),
        (None, ("NoneType",)),
        (specs.Array([2], np.float32), ("bounds",)),
        (specs.BoundedArray([2], np.float32, *_EXTREMES), ("bounds",)),
        (specs.Array([], np.int32), ("bounds",)),
        (specs.BoundedArray([0], np.float32, -1, 1), ("[0]",)),
        (specs.BoundedArray([], bool, False, True), ("bool",)),
    )
    def test_unsupported_spec_is_rejected(self, spec, named):
        with messages.raises(faults.UnsupportedSpaceError, *named):
            canonical_actions.Action(spec)


if __name__ == "__main__":
    absltest.main()
