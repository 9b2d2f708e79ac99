"""Tests of canonical actions: the table of docs/environments.md, and rejected specs."""

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs
from gymnasium import spaces

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
        (spaces.MultiDiscrete([2, 3]), ("MultiDiscrete",)),
        (spaces.MultiBinary(3), ("MultiBinary",)),
        (spaces.Dict(a=spaces.Discrete(2)), ("Dict",)),
        (spaces.Tuple([spaces.Discrete(2)]), ("Tuple",)),
        (spaces.Box(0, 5, [2], np.int64), ("int64", "[2]")),
        (spaces.Box(-np.inf, np.inf, [2]), ("[-inf, -inf]", "[inf, inf]")),
        (spaces.Box(-np.inf, 1, [1], np.float64), ("[-inf]", "[1.0]")),
        (spaces.Box(-1e300, 1e300, [1], np.float64), ("[-inf]", "[inf]")),
        (spaces.Box(1, 1, [1], np.float32), ("[1.0]",)),
        (spaces.Box(0, 10**6, [], np.int64), ("1000001", "1", "10,000")),
    )
    def test_unsupported_space_is_rejected(self, space, named):
        with messages.raises(faults.UnsupportedSpaceError, *named) as context:
            canonical_actions.Action(gymnasium_adapter.action_spec_of(space))
        self.assertNotIn("\n", str(context.exception))

    @parameterized.parameters(
        ({"a": specs.DiscreteArray(2)}, ("dict", 1)),
        ([specs.DiscreteArray(2)], ("list", 1)),
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
