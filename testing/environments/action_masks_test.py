"""Tests of environments with action masks: specs, random actions, faults and rejections."""

from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs
from gymnasium import spaces

from laser_tf import observations
from laser_tf.environments import (
    action_masks,
    canonical_observations,
    environment_check,
    faults,
    gymnasium_adapter,
    suites,
)
from testing import messages
from testing.environments import masked_doors, rollouts

DOORS = "testing.environments.masked_doors:Doors-v0"
CHOICE = "testing.environments.masked_doors:Choice"


def _make(suite, task, **options):
    return rollouts.make(suite, task, **{"num_envs": 2, "num_workers": 1, **options})


def _act_randomly(environment, steps):
    """Returns an EnvOutput [steps + 1, N, ...]."""
    generator, outputs = np.random.default_rng(0), [environment.reset()]
    for _ in range(steps):
        outputs.append(environment.step(environment.random_actions(generator)))
    return rollouts.map_columns(lambda *column: np.stack(column), *outputs)


class RolloutTest(parameterized.TestCase):
    def test_mask_of_info_becomes_part_of_the_observation(self):
        with _make("gymnasium", DOORS) as environment:
            spec = environment.spec()
            outputs = _act_randomly(environment, 200)
        size = 2 * masked_doors.NUM_PAIRS
        mask_spec = observations.action_mask(spec.observation)
        self.assertEqual((mask_spec.shape, mask_spec.dtype), ((size,), bool))
        self.assertEqual(set(outputs.observation), {"action_mask", "observation"})
        mask, is_last = outputs.observation["action_mask"], outputs.discount == 0
        np.testing.assert_array_equal(mask.sum(-1), np.where(is_last, 0, 2))
        # Random actions are allowed: no episode is shorter than 3 steps, and all pairs occur.
        starts = np.flatnonzero(outputs.is_first[:, 0])
        np.testing.assert_array_equal(np.diff(starts), masked_doors.STEPS + 1)
        self.assertTrue(mask.any((0, 1)).all())
        taken = np.take_along_axis(mask[:-1], outputs.previous_action[1:, :, None], axis=-1)[..., 0]
        self.assertTrue(taken[~is_last[:-1]].all())

    @parameterized.parameters("bool", "int64")
    def test_mask_in_the_observation_is_converted_to_bool(self, dtype):
        with _make("dm_env", CHOICE, arguments={"dtype": dtype}) as environment:
            outputs = _act_randomly(environment, 40)
            self.assertEqual(environment.native_specs()[0].observation_offsets, [0, 0])
        mask = outputs.observation["action_mask"]
        self.assertEqual(mask.dtype, bool)
        np.testing.assert_array_equal(mask.sum(-1), 2)
        np.testing.assert_array_equal(outputs.reward[1::2], 1)

    def test_offset_of_the_observation_is_not_that_of_the_mask(self):
        space, mask = spaces.Discrete(3, start=5), specs.Array([2], bool)
        self.assertEqual(gymnasium_adapter.observation_offsets(space, mask), [0, 5])

    @parameterized.parameters(
        ("shape", (15, 16)), ("none allowed", ("every action",)), ("missing", ("info",))
    )
    def test_invalid_mask_is_a_fault_of_the_environment(self, fault, parts):
        named = 0, "Doors-v0", "action_mask", "environment.max_broken_episodes", *parts
        options = {"arguments": {"fault": fault}, "max_broken_episodes": 1, "num_envs": 1}
        with _make("gymnasium", DOORS, **options) as environment:
            with messages.raises(faults.EnvironmentFailedError, *named):
                _act_randomly(environment, 20)

    def test_check_describes_the_mask(self):
        config = suites.config_class("gymnasium")(task=DOORS, num_envs=1)
        with mock.patch.object(environment_check, "_SPEED_SECONDS", 0.05):
            report = environment_check.check(config, steps=20, seed=0, seconds=5)
        self.assertEqual(report.fault, "")
        self.assertTrue(any("action_mask" in line and "16" in line for line in report.lines))


class RejectionTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"arguments": "continuous=True"}, ("discrete actions",)),
        ({"arguments": "several=True"}, ("discrete actions",)),
        ({"arguments": "size=3"}, (4, 3)),
        ({"arguments": "dtype=float32"}, ("float32",)),
        ({"action_repeat": 2}, ("environment.action_repeat", 1, 2)),
    )
    def test_unusable_mask_is_rejected_in_one_line(self, options, named):
        with messages.raises(faults.EnvironmentCreationError, "Choice", "action_mask", *named):
            with _make("dm_env", CHOICE, **options):
                pass

    def test_first_mask_of_another_size_is_rejected(self):
        named = "Doors-v0", "action_mask", 15, 16
        with messages.raises(faults.EnvironmentCreationError, *named):
            with _make("gymnasium", DOORS, arguments={"fault": "shape", "at": 0}):
                pass

    def test_entry_other_than_0_and_1_is_named(self):
        with messages.raises(ValueError, "action_mask", "[0, 2, 1]"):
            action_masks.convert(np.array([0, 2, 1]), is_terminal=False)

    def test_nested_key_has_no_special_meaning(self):
        spec = {"part": {"action_mask": specs.Array([3], bool)}}
        observation = canonical_observations.Observation(spec, 0, num_actions=5)
        self.assertEqual(observation.spec["part"]["action_mask"].dtype, np.float32)


if __name__ == "__main__":
    absltest.main()
