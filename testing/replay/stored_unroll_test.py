"""From single frames in an actor's buffer to the loss's unroll."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf import types
from laser_tf.replay import frame_stacking, stored_unroll, writers
from testing import fakes

T, N, K, A = 4, 3, 3, 2
SPEC = fakes.image_spec((2, 2, 1), A)
TASKS = np.array([0, 2, 1], np.int32)
SIGNATURE = fakes.signature(SPEC, (tf.zeros([1, 2]),), unroll_length=T, frame_stack=K)


def _seen(step: int, is_first: bool) -> types.EnvOutput:
    """A step whose numbers encode its step and environment."""
    number = 10 * step + np.arange(N)
    return types.EnvOutput(
        observation=np.broadcast_to(number[:, None, None, None], (N, 2, 2, 1)).astype(np.uint8),
        reward=number.astype(np.float32),
        discount=np.ones(N, np.float32),
        is_first=np.full(N, is_first),
        previous_action=number.astype(np.int32),
    )


def _add_steps(buffer: writers.UnrollBuffer, steps: range, firsts: set[int]):
    for step in steps:
        answer = types.AgentOutput(np.full(N, step, np.int32), np.full([N, A], step, np.float32))
        state = (np.full([N, 2], step, np.float32),)
        buffer.write(writers.Step(_seen(step, step in firsts), answer, state, 0))


def _unpack(unroll: stored_unroll.StoredUnroll) -> types.Unroll:
    batch = tf.nest.map_structure(lambda array: tf.constant(array)[None], unroll)
    return stored_unroll.unpack(stored_unroll.unweighted(batch, np.array([True])))


def _timed(unroll: types.Unroll) -> types.Unroll:
    """Without what has no time axis."""
    return unroll._replace(core_state=(), task=(), is_online=(), is_own=(), importance_weight=())


class StoredUnrollTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._buffer = writers.UnrollBuffer(SIGNATURE, TASKS)

    def test_last_step_is_the_first_of_the_next_unroll(self):
        _add_steps(self._buffer, range(T + 1), {0})
        first = _unpack(tf.nest.map_structure(np.copy, self._buffer.take_unroll(1, 5)))
        _add_steps(self._buffer, range(T + 1, 2 * T + 1), {0})
        second = _unpack(self._buffer.take_unroll(1, 6))
        last_step = tf.nest.map_structure(lambda x: x[-1], _timed(first))
        first_of_next = tf.nest.map_structure(lambda x: x[0], _timed(second))
        tf.nest.map_structure(np.testing.assert_array_equal, last_step, first_of_next)
        self.assertEqual(first.core_state[0].numpy().tolist(), [[0, 0]])
        self.assertEqual(second.core_state[0].numpy().tolist(), [[T, T]])

    def test_steps_keep_their_time_and_environment(self):
        _add_steps(self._buffer, range(T + 1), {0})
        unroll = _unpack(self._buffer.take_unroll(2, 0))
        expected = 10 * np.arange(T + 1) + 2
        np.testing.assert_array_equal(unroll.env_output.reward[:, 0], expected)
        np.testing.assert_array_equal(unroll.env_output.previous_action[:, 0], expected)
        np.testing.assert_array_equal(unroll.env_output.observation[:, 0, 0, 0, -1], expected)
        np.testing.assert_array_equal(unroll.agent_output.action[:, 0], np.arange(T + 1))

    def test_learner_stacks_equal_actor_stacks(self):
        firsts = {0, 6}
        stacker = frame_stacking.FrameStacker(N, SPEC.observation, K)
        seen = []
        for number in range(2 * T + 1):
            _add_steps(self._buffer, range(number, number + 1), firsts)
            step = _seen(number, number in firsts)
            seen.append(stacker.push(step.observation, step.is_first)[1].copy())
        unroll = _unpack(self._buffer.take_unroll(1, 0))
        np.testing.assert_array_equal(unroll.env_output.observation[:, 0], seen[T:])
        # Step 7 follows the episode that began at step 6: one frame of history, one of zeros.
        self.assertEqual(unroll.env_output.observation[3, 0, 0, 0].numpy().tolist(), [0, 61, 71])

    def test_signature_fits_what_the_buffer_yields(self):
        _add_steps(self._buffer, range(T + 1), {0})
        unroll = self._buffer.take_unroll(0, 3)
        tf.nest.map_structure(
            lambda spec, array: self.assertEqual(
                (tuple(spec.shape), spec.dtype.as_numpy_dtype), (array.shape, array.dtype.type)
            ),
            SIGNATURE,
            unroll,
        )


class ExperienceAgeTest(absltest.TestCase):
    def _batch(self, *entries: tuple[int, int, bool, bool]) -> stored_unroll.Batch:
        """Entries of (member, learner_update, is_online, is_blank)."""
        members, updates, online, blank = map(np.array, zip(*entries, strict=True))
        spec = fakes.image_spec((2, 2, 1), 3)
        signature = fakes.signature(spec, (), unroll_length=4, frame_stack=2)
        one = stored_unroll.blank(signature)
        unrolls = tf.nest.map_structure(lambda array: np.stack([array] * len(entries)), one)
        unrolls.env_output.is_first[~blank, 1:] = False  # an episode's start at most
        unrolls = unrolls._replace(member=members, learner_update=updates)
        return stored_unroll.unweighted(unrolls, online)

    def test_online_and_replayed_entries_have_separate_ages(self):
        batch = self._batch((1, 99, True, False), (1, 60, False, False), (1, 70, False, False))
        self.assertEqual(
            stored_unroll.experience_age(batch, 100, member_index=1),
            {"replay/policy_lag_updates": 1.0, "replay/age_updates": 35.0},
        )

    def test_entries_of_other_members_have_no_age(self):
        batch = self._batch(
            (1, 90, False, False), (0, 5_000, False, False), (2, 1, False, False),
            (1, 0, False, True), (0, 0, False, True),
        )  # fmt: skip
        self.assertEqual(
            stored_unroll.experience_age(batch, 100, member_index=1), {"replay/age_updates": 10.0}
        )
        self.assertEqual(stored_unroll.experience_age(batch, 100, member_index=3), {})


if __name__ == "__main__":
    absltest.main()
