"""The stream of a learner that keeps its sequences itself: its pace, errors, a lost server."""

import pathlib
import tempfile
import time
from unittest import mock

import numpy as np
import pytest
import tree
from absl.testing import absltest

from laser_tf.replay import (
    batch_sources,
    client,
    connection,
    contextual_replay,
    sequence_store,
    stored_unroll,
)
from laser_tf.training import run_config
from testing import fakes, messages, numbered_sequences, processes, replay_processes

SIGNATURE, U = numbered_sequences.SIGNATURE, numbered_sequences.U


class ContextualBatchesTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._config = numbered_sequences.config(steps_per_update=10)
        self._store = sequence_store.SequenceStore(self._config, SIGNATURE)
        for number in range(10):
            self._store.add(numbered_sequences.make(0, number + 3))

    def test_new_priorities_apply_after_two_batches(self):
        batches = contextual_replay.sampled_batches(self._config, self._store)
        context = fakes.learner_context(SIGNATURE)
        stream = batch_sources.BatchSource(context, batches, [])
        self.addCleanup(stream.close)
        stream.get(lambda: False)
        time.sleep(0.5)  # two are sampled by now
        keys = np.array([one.key for one in self._store.contents().sequences])
        self._store.update(keys.astype(np.uint64), (keys == keys[4]).astype(float))
        for _ in range(2):
            stream.get(lambda: False)
        for _ in range(5):
            np.testing.assert_array_equal(stream.get(lambda: False).key, keys[4])

    def test_items_of_a_turn_are_ordered_by_stream_and_number(self):
        store = sequence_store.SequenceStore(self._config, SIGNATURE)
        sequences = [
            numbered_sequences.make(2, 3),
            numbered_sequences.make(1, 4, blanks=(0, 1)),
            numbered_sequences.make(1, 3),
        ]
        headers = [
            stored_unroll.UnrollHeader(np.int64(U), np.int64(stream), np.int64(number))
            for stream, number in ((2, 1), (1, 2), (1, 1))
        ]
        ordered = contextual_replay._fill_in_turns(store, iter([[headers, sequences]]))
        self.assertEqual([h[1:] for h in ordered], [(1, 1), (1, 2), (2, 1)])
        added = [(s.stream, max(s.numbers)) for s in store.contents().sequences]
        self.assertEqual(added, [(1, 3), (1, 4), (2, 3)])

    def test_background_error_reaches_the_learner(self):
        def fail():
            raise MemoryError
            yield

        source = batch_sources.BackgroundSource(fail(), [])
        outer = batch_sources.BackgroundSource(iter(()), [source])
        self.addCleanup(outer.close)
        with self.assertRaises(MemoryError):
            outer.poll(1.0)


class LostServerTest(absltest.TestCase):
    @pytest.mark.long
    def test_restored_sequences_are_stored_once(self):
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
            replay = config.make_learner_client(client.ReplayClient(source), SIGNATURE, folder)
            stream = fakes.make_batches(config, replay, SIGNATURE)
            self.addCleanup(stream.close)
            processes.wait_until(lambda: replay.size() == 10)
            served.kill()
            again = replay_processes.ReplayProcess(
                config, SIGNATURE, folder / "replay", served.port
            )
            self.addCleanup(again.kill)
            with mock.patch.object(replay.store, "add", wraps=replay.store.add) as adding:
                processes.wait_until(source.poll)
                _write(source, range(10, 15))
                processes.wait_until(lambda: adding.call_count == 15)
            self.assertEqual(replay.size(), 15)


def _write(source: connection.ReplayConnection, newest: range) -> None:
    """Writes sequences of environment 0 to the queue."""
    size = numbered_sequences.S
    with source.client.trajectory_writer(size) as writer:
        for number in newest:
            sequence = numbered_sequences.make(0, number + 3)
            for place in range(size):
                writer.append(tree.map_structure(lambda column, at=place: column[at], sequence))
            trajectory = tree.map_structure(lambda column: column[-size:], writer.history)
            writer.create_item("new_sequences", 1.0, trajectory)
            writer.flush()


class LearnersTest(absltest.TestCase):
    def test_several_learners_are_rejected(self):
        config = fakes.r2d2_catch_config(replay={"scheme": "contextual"})
        values = fakes.config_values(config)
        values["cluster"].update(actors=2, learners=2)
        with messages.raises(ValueError, "learners", 2, "contextual"):
            run_config.parse(values)


if __name__ == "__main__":
    absltest.main()
