"""The stream of a learner that keeps its sequences itself: its pace, errors, a lost server."""

import itertools
import pathlib
import tempfile
import time
from unittest import mock

import numpy as np
import tree
from absl.testing import absltest

from laser_tf.replay import (
    client,
    connection,
    contextual_replay,
    sequence_store,
    stored_unroll,
)
from laser_tf.training import run_config
from testing import fakes, messages, numbered_sequences, replay_processes

SIGNATURE, U = numbered_sequences.SIGNATURE, numbered_sequences.U
NOBODY_STOPS = lambda: False  # noqa: E731


class _Counts:
    """A count for each unroll of so many steps."""

    def __init__(self, steps: int):
        self._counts = (
            stored_unroll.Count(np.int64(steps), np.int64(1), np.int64(number))
            for number in itertools.count()
        )

    def get(self, should_stop):
        return None if should_stop() else next(self._counts)

    def close(self):
        pass


class PaceTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._config = numbered_sequences.config(steps_per_update=10)
        self._store = sequence_store.SequenceStore(self._config, SIGNATURE, seed=1)

    def _stream(self, source, unroll_steps=4) -> contextual_replay.ContextualBatches:
        new_sequences = mock.Mock(side_effect=source)
        stream = contextual_replay.ContextualBatches(
            _Counts(unroll_steps), new_sequences, self._store, self._config
        )
        self.addCleanup(stream.close)
        return stream

    def test_an_update_waits_for_new_steps_and_draws_what_the_store_has(self):
        for number in range(10):
            self._store.add(numbered_sequences.make(0, number + 3))
        stream = self._stream(lambda: None)
        taken = [stream.get(NOBODY_STOPS) for _ in range(4)]
        # One update for every 10 steps, in unrolls of 4.
        self.assertEqual([int(batch.new_steps) for batch in taken], [12, 8, 12, 8])
        for batch in taken:
            self.assertEqual(batch.unrolls.env_output.reward.shape, (4, 3 * U + 1))
            np.testing.assert_array_equal(batch.importance_weight, 1)
            self.assertEqual(batch.key.dtype, np.uint64)

    def test_an_unroll_may_bring_the_steps_of_several_updates(self):
        for number in range(10):
            self._store.add(numbered_sequences.make(0, number + 3))
        stream = self._stream(lambda: None, unroll_steps=32)
        steps = [int(stream.get(NOBODY_STOPS).new_steps) for _ in range(101)]
        # At first there may have been a warm-up, for which no updates are owed. Then one for every
        # 10 steps: of 32, 2 beyond the first 30, and 30 of the next.
        self.assertEqual(steps[:8], [32, 32, 0, 0, 32, 0, 0, 32])
        self.assertEqual(sum(steps[1:]), 32 * 32)  # the first 998 of them

    def test_new_priorities_count_from_the_second_update_after_on(self):
        for number in range(10):
            self._store.add(numbered_sequences.make(0, number + 3))
        stream = self._stream(lambda: None)
        stream.get(NOBODY_STOPS)
        time.sleep(0.5)  # two are drawn by now
        keys = self._store.contents().keys
        self._store.update(keys.astype(np.uint64), (keys == keys[4]).astype(float))
        for _ in range(2):
            stream.get(NOBODY_STOPS)
        for _ in range(5):
            np.testing.assert_array_equal(stream.get(NOBODY_STOPS).key, keys[4])

    def test_the_first_update_waits_for_a_sequence(self):
        added = iter([numbered_sequences.make(0, 3)])

        def come():
            time.sleep(0.5)
            return next(added, None)

        batch = self._stream(come).get(NOBODY_STOPS)
        self.assertEqual(set(batch.unrolls.number.tolist()), {3})

    def test_an_error_of_the_filling_reaches_the_learner(self):
        stream = self._stream(mock.Mock(side_effect=MemoryError("no memory for a sequence")))
        with self.assertRaisesRegex(MemoryError, "no memory for a sequence"):
            stream.get(NOBODY_STOPS)


class LostServerTest(absltest.TestCase):
    def test_what_a_servers_checkpoint_brings_back_is_not_kept_twice(self):
        config = numbered_sequences.config(queue_capacity=1_000)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            served = replay_processes.ReplayProcess(config, SIGNATURE, folder / "replay")
            self.addCleanup(served.kill)
            source = connection.ReplayConnection(served.address, config)
            source.check(SIGNATURE)
            source.start_polling()
            self.addCleanup(source.stop)
            _write(source, range(10))
            served.checkpoint()
            replay = config.learner_replay(client.LearnerReplay(source), SIGNATURE, folder)
            stream = fakes.make_batches(config, replay, SIGNATURE)
            self.addCleanup(stream.close)
            replay_processes.wait_until(lambda: replay.size() == 10)
            served.kill()
            again = replay_processes.ReplayProcess(
                config, SIGNATURE, folder / "replay", served.port
            )
            self.addCleanup(again.kill)
            with mock.patch.object(replay.store, "add", wraps=replay.store.add) as adding:
                replay_processes.wait_until(source.poll)
                _write(source, range(10, 15))
                replay_processes.wait_until(lambda: adding.call_count == 15)
            self.assertEqual(replay.size(), 15)


def _write(source: connection.ReplayConnection, newest: range) -> None:
    """Writes sequences of game 0 to the queue."""
    size = numbered_sequences.S
    with source.client.trajectory_writer(size) as writer:
        for number in newest:
            sequence = numbered_sequences.make(0, number + 3)
            for place in range(size):
                writer.append(tree.map_structure(lambda column, at=place: column[at], sequence))
            trajectory = tree.map_structure(lambda column: column[-size:], writer.history)
            writer.create_item("new_sequences", 1.0, trajectory)
            writer.flush()


class RefusalTest(absltest.TestCase):
    def test_several_learners_are_refused(self):
        config = fakes.r2d2_catch_config(replay={"scheme": "contextual"})
        values = fakes.config_values(config)
        values["cluster"].update(actors=2, learners=2)
        with messages.raises(ValueError, "learners", 2, "contextual"):
            run_config.parse(values)


if __name__ == "__main__":
    absltest.main()
