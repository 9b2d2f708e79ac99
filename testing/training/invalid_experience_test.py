"""Tests of replay that holds values which no actor of the run writes."""

import itertools
from unittest import mock

import numpy as np
import tree
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.distributions import gaussian
from laser_tf.replay import batch_sources, resilient_writer, stored_unroll, unroll_check
from laser_tf.replay.schemes import replay_only
from testing import fakes, folders, runs


def _filled(array: np.ndarray, value: float) -> np.ndarray:
    return np.full_like(array, value)


def _forged(unroll: stored_unroll.StoredUnroll, field: str) -> stored_unroll.StoredUnroll:
    """Returns the unroll with an invalid value in a field."""
    env_output, agent_output = unroll.env_output, unroll.agent_output
    if field in ("reward", "discount", "previous_action"):
        value = {"reward": np.nan, "discount": 5, "previous_action": -3}[field]
        changed = {field: _filled(getattr(env_output, field), value)}
        return unroll._replace(env_output=env_output._replace(**changed))
    if field in ("action", "policy"):
        value = {"action": 7, "policy": np.inf}[field]
        parts = getattr(agent_output, field)
        changed = {field: tree.map_structure(lambda part: _filled(part, value), parts)}
        return unroll._replace(agent_output=agent_output._replace(**changed))
    if field == "core_state":
        states = tree.map_structure(lambda part: _filled(part, np.nan), unroll.core_state)
        return unroll._replace(core_state=states)
    return unroll._replace(**{field: _filled(getattr(unroll, field), 9)})


_FIELDS = ("action", "reward", "discount", "previous_action", "policy", "core_state", "task")


_SPEC = fakes.image_spec((4, 4, 1), 3, num_tasks=2)
_SIZE = 3  # unrolls in a batch
_STATE = np.zeros([1, 2], np.float32)
_BOUNDS = specs.BoundedArray([2], np.float32, [-1, -2], [1, 2])
_PARTS = types.ProductSpec([specs.DiscreteArray(3), _BOUNDS])
_SIGNATURE = fakes.signature(_SPEC, _STATE, unroll_length=2, frame_stack=2)


def _unrolls(spec: types.EnvironmentSpec = _SPEC, policy=None) -> stored_unroll.StoredUnroll:
    """Returns a valid batch, optionally with another spec of actions and policy."""
    unrolls = tree.map_structure(
        lambda leaf: np.repeat(leaf[None], _SIZE, axis=0), stored_unroll.blank(_SIGNATURE)
    )
    unrolls.env_output.is_first[:] = False
    if policy is None:
        return unrolls
    action = np.zeros([_SIZE, 3, *spec.action.shape], np.float32)
    return unrolls._replace(
        env_output=unrolls.env_output._replace(previous_action=action),
        agent_output=types.AgentOutput(action.copy(), policy),
    )


class UnrollCheckTest(parameterized.TestCase):
    """Batches of three unrolls, of which the second one may be invalid."""

    @parameterized.parameters(*_FIELDS)
    def test_invalid_value_is_found_in_its_unroll(self, field):
        unrolls = _unrolls()
        check = unroll_check.UnrollCheck(_SPEC)
        self.assertEmpty(check.find_invalid(unrolls))
        forged = _forged(unrolls, field)
        mixed = tree.map_structure(
            lambda valid, invalid: np.stack([valid[0], invalid[1], valid[2]]), unrolls, forged
        )
        found = check.find_invalid(mixed)
        self.assertCountEqual(found, [field])
        np.testing.assert_array_equal(found[field], [False, True, False])

    def test_huge_finite_rewards_are_valid(self):
        forged = _unrolls()
        forged.env_output.reward[:] = 1e30  # whose squares are infinite
        self.assertEmpty(unroll_check.UnrollCheck(_SPEC).find_invalid(forged))

    @parameterized.named_parameters(
        ("continuous", _BOUNDS, (), (-1, -2), (-2, -1)),
        ("part", _PARTS, (np.zeros([_SIZE, 3, 3], np.float32),), (2, -1, 2), (3, 0, 0)),
    )
    def test_action_out_of_bounds_is_found(self, action, others, valid, invalid):
        spec = types.EnvironmentSpec(_SPEC.observation, action)
        gaussians = gaussian.Parameters(*np.ones([2, _SIZE, 3, 2], np.float32))
        unrolls = _unrolls(spec, (*others, gaussians) if others else gaussians)
        check = unroll_check.UnrollCheck(spec)
        unrolls.agent_output.action[0] = valid
        self.assertEmpty(check.find_invalid(unrolls))
        unrolls.agent_output.action[1, 0] = invalid
        gaussians.std[2, 1] = 0
        found = check.find_invalid(unrolls)
        np.testing.assert_array_equal(found["action"], [False, True, False])
        np.testing.assert_array_equal(found["policy"], [False, False, True])

    def test_unknown_word_is_found(self):
        spec = _SPEC._replace(observation=types.TextSpec(4))
        unrolls = _unrolls()
        words = np.zeros([_SIZE, 3, 4], np.int32)
        words[1] = types.VOCABULARY_SIZE
        unrolls = unrolls._replace(env_output=unrolls.env_output._replace(observation=words))
        found = unroll_check.UnrollCheck(spec).find_invalid(unrolls)
        np.testing.assert_array_equal(found["observation"], [False, True, False])

    def test_only_invalid_batches_end_the_run_with_one_error(self):
        check = unroll_check.UnrollCheck(_SPEC)
        batch = stored_unroll.unweighted(_forged(_unrolls(), "reward"), np.ones(_SIZE, bool))
        with self.assertRaises(unroll_check.InvalidExperienceError):
            for _ in range(1_000):
                masked = check.mask(batch)
                self.assertTrue(masked.unrolls.env_output.is_first.all())


class CountTest(parameterized.TestCase):
    """Counts of new steps that replay gives to a learner."""

    @parameterized.parameters(10**15, -(10**15))
    def test_forged_count_does_not_use_up_the_budget(self, forged):
        config = fakes.r2d2_catch_config().replay
        steps = itertools.chain([forged], itertools.repeat(config.unroll_length))
        counts = (
            stored_unroll.UnrollHeader(np.int64(count), np.int64(1), np.int64(number))
            for number, count in enumerate(steps)
        )
        replayed = itertools.repeat(stored_unroll.unweighted(_unrolls(), np.zeros(_SIZE, bool)))
        pace = replay_only.UpdateRateLimiter(config, lambda: 10**6, batch_sources.UnrollCounter())
        batch = next(pace.batches(counts, replayed))
        self.assertBetween(batch.new_steps, config.steps_per_update, 10_000)


class RunTest(folders.FolderTest):
    """Runs in whose replay one of eight unrolls is forged."""

    @parameterized.named_parameters(
        ("laser", fakes.catch_config, {"agent": {"popart": True, "core": "lstm"}}),
        ("reactor_contextual", fakes.reactor_catch_config, {"replay": {"scheme": "contextual"}}),
        ("acer", fakes.acer_catch_config, {}),
    )
    def test_forged_unrolls_are_masked_and_training_continues(self, make_config, sections):
        append = resilient_writer.ResilientWriter.append
        fields = itertools.cycle([part for field in _FIELDS for part in (*[""] * 7, field)])

        def append_forged(self, data):
            field = next(fields)
            append(self, _forged(data, field) if field else data)

        with (
            mock.patch.object(resilient_writer.ResilientWriter, "append", append_forged),
            self.assertLogs(level="WARNING") as logs,
        ):
            run = runs.train(make_config(**sections), self._workdir)
        self.assertTrue(run.finished)
        self.assertEqual(run.counters.non_finite_updates, 0)
        self.assertLess(len([line for line in logs.output if "not valid" in line]), 8)


if __name__ == "__main__":
    absltest.main()
