"""Retries of iterators, counts of unrolls, and the rate limit of updates."""

import itertools
from unittest import mock

import numpy as np
import reverb
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.replay import batch_sources, stored_unroll
from laser_tf.replay.schemes import replay_only
from testing import messages

U = 4  # steps of an unroll


class ServerIteratorTest(parameterized.TestCase):
    @parameterized.parameters(RuntimeError("gone"), reverb.DeadlineExceededError("late"))
    def test_error_of_a_server_is_retried(self, error):
        self.enter_context(mock.patch.object(batch_sources, "_RETRY_SECONDS", 0.0))
        make = mock.Mock(side_effect=[error, tf.data.Dataset.from_tensors(np.int64(7))])
        replay = mock.Mock(**{"wait.return_value": True, "poll.return_value": True})
        elements = batch_sources.ServerIterator(replay, make)
        self.assertEqual(next(elements), 7)
        self.assertEqual(make.call_count, 2)

    def test_close_while_the_dataset_is_made_ends_it(self):
        def make(_):
            elements.close()
            return tf.data.Dataset.from_tensors(np.int64(7))

        elements = batch_sources.ServerIterator(mock.Mock(**{"wait.return_value": True}), make)
        self.assertEmpty(list(elements))


class UnrollCounterTest(parameterized.TestCase):
    @parameterized.parameters(
        ([0, 1, 2, 3], 0, 0),
        ([5, 6, 7], 0, 0),  # earlier unrolls came to another learner process
        ([0, 1, 4, 5], 2, 0),
        ([0, 3, 1, 2], 0, 0),  # overtaken, not lost
        ([0, 1, 1, 2, 2], 0, 2),
        ([2, 1, 0], 0, 0),
    )
    def test_gaps_and_repetitions_are_counted(self, numbers, lost, duplicated):
        counter = batch_sources.UnrollCounter()
        for number in numbers:
            counter.add(np.array([7, 8]), np.array([number, number]))
        self.assertEqual(
            counter.metrics(),
            {"replay/lost_unrolls": 2.0 * lost, "replay/duplicated_unrolls": 2.0 * duplicated},
        )


def _new_steps(
    number: int,
    unroll_steps,
    sizes=None,
    growth_timeout_seconds: float = 60.0,
    replayed=None,
    **overrides,
):
    """Returns the new steps of the first batches.

    Args:
      number: Number of batches.
      unroll_steps: Steps of each unroll that arrives.
      sizes: Number of items in replay whenever it is looked at.
      growth_timeout_seconds: See `UpdateRateLimiter`.
      replayed: Replayed batches, None while replay is empty.
      **overrides: Overrides of the scheme.
    """
    values = {"unroll_length": U, "steps_per_update": 10, "capacity": 10_000, "batch_size": 1}
    scheme = replay_only.ReplayOnly(**values | overrides)
    counts = (
        stored_unroll.UnrollHeader(np.int64(steps), np.int64(1), np.int64(place))
        for place, steps in enumerate(unroll_steps)
    )
    sizes, counter = sizes or itertools.repeat(10**6), batch_sources.UnrollCounter()
    limiter = replay_only.UpdateRateLimiter(
        scheme, lambda: next(sizes), counter, growth_timeout_seconds
    )
    replayed = replayed or itertools.repeat(stored_unroll.Batch(*[()] * 5))
    batches = itertools.islice(limiter.batches(counts, iter(replayed)), number)
    return [int(batch.new_steps) for batch in batches]


def _unrolls(first: int = U + 1):
    return itertools.chain([first], itertools.repeat(U))


class UpdateRateLimiterTest(parameterized.TestCase):
    def test_batch_waits_for_steps_per_update(self):
        self.assertEqual(_new_steps(4, _unrolls(U)), [12, 8, 12, 8])

    def test_long_unrolls_allow_several_batches(self):
        # No updates are due for the steps that came before the first batch. Then one for every 10
        # steps: of 32, 2 beyond the first 30, and 30 of the next.
        steps = _new_steps(101, itertools.repeat(32))
        self.assertEqual(steps[:8], [32, 32, 0, 0, 32, 0, 0, 32])
        self.assertEqual(sum(steps[1:]), 32 * 32)  # the first 998 of them

    def test_batches_wait_for_the_warm_up(self):
        # Cold at 13, 17 and 21 steps; warm at 25, of which 5 are beyond the last 10; then one
        # batch for every 10: 33 - 20 = 13, 3 beyond, and so on.
        sizes = itertools.chain([0, 3, 3], itertools.repeat(4))
        self.assertEqual(_new_steps(4, _unrolls(), sizes, warm_up=4 * U), [25, 8, 8, 12])

    def test_emptied_replay_warms_up_again(self):
        # Warm at 13, 3 beyond, and 11, 1 beyond; cold at 13 and 17, warm at 21, of which 1 is
        # beyond the last 10: no two batches follow at once.
        sizes = itertools.chain([4, 4, 1, 2], itertools.repeat(4))
        self.assertEqual(_new_steps(4, _unrolls(), sizes, warm_up=4 * U), [13, 8, 20, 12])

    def test_counts_are_taken_while_replay_is_empty(self):
        batch = stored_unroll.Batch(*[()] * 5)
        replayed = [batch, None, None, batch, batch]
        # Warm at 13, 3 beyond; empty after 8 and 12 more steps; at 16, 9 are beyond the last 10.
        self.assertEqual(_new_steps(3, _unrolls(), replayed=replayed), [13, 16, 4])

    def test_full_replay_below_the_warm_up_is_warm(self):
        # Warm at 13 and 8; cold at 12, and 16 more have come without replay's growing; from then
        # on, 9 being beyond the last 10, as if it were warm.
        sizes = itertools.chain([4, 4], itertools.repeat(2))
        with messages.warns("replay.warm_up", 2, 4):
            steps = _new_steps(5, _unrolls(), sizes, growth_timeout_seconds=0.0, warm_up=4 * U)
        self.assertEqual(steps, [13, 8, 28, 4, 8])


if __name__ == "__main__":
    absltest.main()
