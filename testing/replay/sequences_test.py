"""Overlapping sequences: every step of an episode, in order, never across its ends."""

import pathlib
import tempfile
import threading
from unittest import mock

import numpy as np
import tensorflow as tf
import tree
from absl.testing import absltest, parameterized

from laser_tf import types
from laser_tf.replay import (
    batch_sources,
    client,
    connection,
    dataset,
    sequence_writer,
    server,
    stored_unroll,
    writers,
)
from laser_tf.replay.schemes import base, contextual, sequences
from testing import fakes, messages, processes

U, K, A, H = 4, 3, 2, 2  # steps of an unroll, frames of a stack, actions, units of the core
SPEC = fakes.image_spec((2, 2, 1), A)
SIGNATURE = fakes.signature(
    SPEC, (tf.zeros([1, H]),), unroll_length=U, frame_stack=K, for_sequences=True
)


def _config(
    scheme: type[sequences.Sequences] = sequences.Sequences, **overrides
) -> sequences.Sequences:
    values = {
        "unroll_length": U,
        "frame_stack": K,
        "batch_size": 2,
        "capacity": 10_000,
        "queue_capacity": 1_000,
        "steps_per_update": U,
        "sequence_length": 2 * U,
        "sequence_overlap": U,
        "burn_in": U,
        "priority_exponent": 0.0,
        "importance_exponent": 1.0,
    }
    return scheme(**values | overrides)


def _numbered(lengths: list[list[int]]):
    """Steps of environments with episodes of so many transitions; then each begins one more.

    All contents number the steps of an environment: episode 2 of environment 1 begins at 120 + 1.
    """
    environments = [
        [
            (100 * environment + 40 * episode + step + 1, step == 0)
            for episode, length in enumerate([*episodes, 10**3])
            for step in range(length + 1)
        ]
        for environment, episodes in enumerate(lengths)
    ]
    for time in range(max(sum(episodes) + len(episodes) for episodes in lengths) + 1):
        number, is_first = (
            np.array(column)
            for column in zip(*(environment[time] for environment in environments), strict=True)
        )
        yield types.EnvOutput(
            observation=np.tile(number.astype(np.uint8)[:, None, None, None], [1, 2, 2, 1]),
            reward=number.astype(np.float32),
            discount=np.ones(len(environments), np.float32),
            is_first=is_first,
            previous_action=number.astype(np.int32),
        )


class SequencesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())) / "replay"
        self._new = []  # the rewards of every new sequence
        self._stop = threading.Event()

    def _priority(self, parts: stored_unroll.StoredUnroll) -> float:
        self._new.append(parts.env_output.reward)
        return float(len(self._new))

    def _write(
        self, config: sequences.Sequences, lengths: list[list[int]]
    ) -> connection.ReplayConnection:
        self._server = server.ReplayServer(config, SIGNATURE, self._folder)
        self.addCleanup(self._server.stop)
        replay = self._server.connect()
        tasks = np.arange(len(lengths), dtype=np.int32)
        context = base.ActorContext(replay, SIGNATURE, mock.Mock(), tasks)
        target = sequence_writer.SequenceWriter(config, context, self._priority)
        for step in _numbered(lengths):
            answers = np.repeat(step.reward[:, None], A, axis=1)
            answer = types.AgentOutput(step.previous_action, answers)
            target.add(writers.Step(step, answer, (answers.copy(),), 7), self._stop.is_set)
        target.wait(self._stop.is_set)
        return replay

    def _drawn(self, replay: connection.ReplayConnection, config: sequences.Sequences, number: int):
        """Different sequences with their states, (unroll, states), as they are drawn."""
        return self._different(
            dataset.replayed_batches(replay.address, config).take(number), config
        )

    def _different(self, drawn, config: sequences.Sequences):
        found = {}
        for batch in drawn:
            for step in range(config.batch_size):
                one = tree.map_structure(
                    lambda column, step=step: np.asarray(column)[step],
                    (batch.unrolls, batch.stored_states),
                )
                found[_name(one)] = one
        return list(found.values())

    @parameterized.parameters(
        *((_config(), length) for length in (1, U, U + 1, 2 * U, 5 * U + 3)),
        *((_config(burn_in=0), length) for length in (1, 3 * U + 2)),
        *((_config(sequence_length=4 * U, sequence_overlap=2 * U), n) for n in (3, 7 * U + 1)),
        (_config(sequence_overlap=0, burn_in=2 * U), 5 * U + 1),
    )
    def test_episode_is_cut_into_overlapping_sequences(self, config, length):
        replay = self._write(config, [[2, length, 3]])
        first = 40 + 1  # the number of the episode's first step
        starts = set()
        for unroll, (states,) in self._drawn(replay, config, 150):
            numbers = unroll.env_output.reward[~unroll.env_output.is_first[K - 1 :]]
            if not numbers.size or not first <= numbers[0] <= first + length:
                continue  # of another episode
            step = int(np.flatnonzero(~unroll.env_output.is_first[K - 1 :])[0])
            start = int(numbers[0]) - step - first
            starts.add(start)
            for t in range(config.steps_per_entry + 1):
                inside = 0 <= start + t <= length
                self.assertEqual(
                    unroll.env_output.is_first[K - 1 + t], not inside or start + t == 0
                )
                if inside:
                    number = first + start + t
                    for column in (
                        unroll.env_output.reward,
                        unroll.agent_output.action,
                        unroll.env_output.previous_action,
                    ):
                        self.assertEqual(column[t], number)
                    np.testing.assert_array_equal(unroll.env_output.observation[K - 1 + t], number)
                    if t % U == 0:
                        np.testing.assert_array_equal(states[t // U], number)
            for t in range(K - 1):  # frames that the first stack needs
                if start - K + 1 + t >= 0:
                    np.testing.assert_array_equal(
                        unroll.env_output.observation[t], first + start - K + 1 + t
                    )
        last = max(-config.burn_in, length - config.steps_per_entry)
        expected = range(
            -config.burn_in, last + config.new_steps_per_item, config.new_steps_per_item
        )
        self.assertEqual(starts, set(expected))

    def test_columns_belong_to_their_environment(self):
        config = _config()
        replay = self._write(config, [[9], [2, 2], [13]])
        for unroll, _ in self._drawn(replay, config, 100):
            is_first = unroll.env_output.is_first[K - 1 :]
            environments = unroll.env_output.reward[~is_first] // 100
            np.testing.assert_array_equal(environments, unroll.task)

    def test_contextual_store_has_the_same_sequences(self):
        lengths = [[9, 2, 5 * U], [2, 2, 13], [1, 3 * U + 1]]
        large = {"batch_size": 400}
        expected = self._drawn(self._write(_config(), lengths), _config(**large), 1)
        asked = len(self._new)
        self._folder = self._folder.with_name("of_another")
        config = _config(contextual.Contextual, priority_exponent=0.9, **large)
        source = self._write(config, lengths)
        replay = config.make_learner_client(
            client.ReplayClient(source), SIGNATURE, self._folder.parent
        )
        stream = fakes.make_batches(config, replay, SIGNATURE)
        self.addCleanup(stream.close)
        processes.wait_until(lambda: replay.size() == asked)
        self.assertEqual(source.size(), 0)
        drawn = dataset.replayed_batch(replay.store.sample(400), config)
        found = self._different([drawn], config)
        self.assertLen(found, len(expected))
        for pair in zip(*(sorted(some, key=_name) for some in (found, expected)), strict=True):
            (one, states), (other, others) = pair
            no_tags = {"stream": (), "number": ()}
            tree.map_structure(
                np.testing.assert_array_equal,
                (one._replace(**no_tags), states),
                (other._replace(**no_tags), others),
            )

    def test_checkpoint_after_invalid_priorities_is_restored(self):
        config = _config(priority_exponent=0.9, batch_size=10)
        replay = self._write(config, [[U * 6]])
        (batch,) = dataset.replayed_batches(replay.address, config).take(1)
        keys = batch.key.numpy()
        bad = [np.nan, np.inf, -np.inf, -1.0]
        replay.update_priorities(keys, np.array(bad + [1.0] * (len(keys) - 4)))
        held = replay.size()
        self._server.checkpoint()
        self._server.stop()
        again = server.ReplayServer(config, SIGNATURE, self._folder)
        self.addCleanup(again.stop)
        self.assertEqual(again.connect().size(), held)

    @parameterized.parameters(np.nan, np.inf, -1.0)
    def test_invalid_first_priority_becomes_zero(self, bad):
        config = _config(priority_exponent=0.9, batch_size=50)
        first = iter([bad])
        with mock.patch.object(self, "_priority", lambda _: next(first, 1.0)):
            replay = self._write(config, [[U * 6]])
        (batch,) = dataset.replayed_batches(replay.address, config).take(1)
        np.testing.assert_allclose(batch.importance_weight, 1.0)
        self.assertLen(set(batch.key.numpy()), replay.size() - 1)  # all but the first

    def test_zero_core_state_keeps_stored_states(self):
        config = _config(core_state="zero")
        replay = self._write(config, [[5 * U]])
        drawn = self._drawn(replay, config, 100)
        for unroll, _ in drawn:
            np.testing.assert_array_equal(unroll.core_state[0], np.zeros(H))
        self.assertTrue(any(states[0].any() for _, (states,) in drawn))

    def test_capacity_in_agent_steps_removes_the_oldest(self):
        config = _config(capacity=5 * U, warm_up=0, batch_size=1)
        replay = self._write(config, [[12 * U]])
        self.assertEqual(replay.size(), 5)
        self.assertEqual(config.fill_level(replay.size()), 1.0)
        firsts = [unroll.env_output.reward[0] for unroll, _ in self._drawn(replay, config, 200)]
        self.assertGreaterEqual(min(firsts), 5 * U + 1)

    def test_every_agent_step_is_counted_once(self):
        config = _config()
        replay = self._write(config, [[3 * U, 1, U + 1, 2], [17]])
        unrolls = replay.client.server_info()[base.QUEUE].current_size
        counts = batch_sources.ServerIterator(
            replay, lambda address: dataset.items(address, base.QUEUE)
        )
        self.addCleanup(counts.close)
        counted = [int(next(counts).new_steps) for _ in range(unrolls)]
        # Steps of episodes including the last step of each episode: all of environment 0; the first
        # episode of environment 1 and one full unroll of its steps in the meantime.
        self.assertEqual(sum(counted), (3 * U + 1) + 2 + (U + 2) + 3 + (17 + 1) + (U + 1))

    def test_emptied_replay_does_not_block_its_iterator(self):
        config = _config()
        replay = self._write(config, [[14 * U]])
        batches = batch_sources.ServerIterator(
            replay, lambda address: dataset.replayed_batches(address, config, empty_seconds=0.1)
        )
        self.addCleanup(batches.close)
        self.assertIsNotNone(next(batches))
        replay.client.reset(config.replay_table)
        processes.wait_until(lambda: next(batches) is None)

    def test_unconsumed_steps_are_counted(self):
        config = _config(steps_per_update=2 * U + 2, warm_up=4 * U)
        replay = self._write(config, [[14 * U]])
        stream = fakes.make_batches(config, replay, SIGNATURE)
        self.addCleanup(stream.close)
        steps = [int(stream.get(self._stop.is_set).new_steps) for _ in range(4)]
        processes.wait_until(lambda: stream.unreported_steps == 14 * U + 1 - sum(steps))

    @parameterized.parameters(
        ({"sequence_length": 2 * U + 1}, "sequence_length", 9, 4),
        ({"burn_in": 3}, "burn_in", 3),
        ({"sequence_overlap": 2 * U}, "sequence_overlap", 8),
        ({"sequence_length": 0}, "sequence_overlap", 4),
        ({"capacity": 23}, "capacity", 23),
        ({"warm_up": 20_000}, "capacity", 10_000, 20_000),
        ({"core_state": "recomputed"}, "core_state", "recomputed"),
    )
    def test_bad_value_is_rejected(self, overrides, *named):
        with messages.raises(ValueError, *named):
            _config(**overrides)


def _name(drawn) -> tuple:
    """Returns a key that differs between sequences."""
    env_output = drawn[0].env_output
    return tuple(env_output.reward) + tuple(env_output.is_first)


if __name__ == "__main__":
    absltest.main()
