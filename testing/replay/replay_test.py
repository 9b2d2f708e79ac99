"""Writing, mixing, sampling and checkpointing through a real Reverb server."""

import os
from unittest import mock

import numpy as np
import reverb
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.replay import connection, dataset, resilient_writer, server, stored_unroll
from laser_tf.replay.schemes import base, mixed, registry, replay_only
from testing import fakes, folders, messages

T = 5
SPEC = fakes.image_spec((4, 3, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=T, frame_stack=2)


def _unroll(number: int) -> stored_unroll.StoredUnroll:
    unroll = stored_unroll.blank(SIGNATURE)
    return unroll._replace(
        learner_update=np.int64(number),
        new_steps=np.int64(T),
        stream=np.int64(1),
        number=np.int64(number),
        env_output=unroll.env_output._replace(
            observation=np.full(unroll.env_output.observation.shape, number % 256, np.uint8)
        ),
    )


def _config(scheme: type[base.ReplayScheme] = mixed.Mixed, **overrides) -> base.ReplayScheme:
    values = {"unroll_length": T, "frame_stack": 2, "batch_size": 4}
    values |= {"capacity": 50, "queue_capacity": 20} | overrides
    known = scheme.__dataclass_fields__
    return scheme(**{key: value for key, value in values.items() if key in known})


class ReplayTest(folders.FolderTest):
    def _serve(self, config: base.ReplayScheme, **arguments) -> connection.ReplayConnection:
        self._server = server.ReplayServer(config, SIGNATURE, self._folder / "replay", **arguments)
        self.addCleanup(self._server.stop)
        return self._server.connect()

    @parameterized.parameters("http_proxy", "grpc_proxy")
    def test_loopback_bypasses_the_proxy(self, name):
        with mock.patch.dict(os.environ, {name: "http://localhost:9"}):
            self._serve(_config()).check(SIGNATURE)  # Raises if no server answers.

    def test_proxy_exceptions_of_the_user_are_kept(self):
        proxied = {
            "grpc_proxy": "http://localhost:9",
            connection.NO_PROXY_VARIABLE: "",
            "no_proxy": "a.org, b",
        }
        with mock.patch.dict(os.environ, proxied):
            self._serve(_config()).check(SIGNATURE)
            hosts = os.environ[connection.NO_PROXY_VARIABLE]
            self.assertContainsSubset(["a.org", "b", "localhost", "127.0.0.1"], hosts.split(","))
            connection.ReplayConnection("10.1.2.3:5000", _config(address="10.1.2.3:5000"))
            self.assertEqual(os.environ[connection.NO_PROXY_VARIABLE], hosts)
            connection.ReplayConnection(lambda: "10.1.2.3:5000", _config())
            self.assertIn("10.1.2.3", os.environ[connection.NO_PROXY_VARIABLE].split(","))

    def _write(self, replay, config, numbers) -> None:
        target = self._stream(replay, config)
        for number in numbers:
            target.write([_unroll(number)], fakes.never)
        target.wait(fakes.never)

    def _stream(self, replay, config) -> resilient_writer.UnrollStream:
        return resilient_writer.UnrollStream(replay, config.unroll_tables(base.QUEUE))

    def test_replay_only_counts_new_steps(self):
        config = _config(replay_only.ReplayOnly, steps_per_update=2 * T, capacity=1000)
        replay = self._serve(config)
        self._write(replay, config, range(6))
        stream = fakes.make_batches(config, replay, SIGNATURE)
        self.addCleanup(stream.close)
        for _ in range(3):
            batch = stream.get(fakes.never)
            self.assertEqual(batch.new_steps, 2 * T)
            self.assertFalse(batch.is_online.any())
            self.assertEqual(batch.unrolls.env_output.observation.shape, (4, 7, 4, 3, 1))
            self.assertContainsSubset(batch.unrolls.learner_update.tolist(), range(6))
        self.assertIsNone(stream.poll(1.0))
        self.assertEqual(replay.size(), 6)

    @parameterized.parameters((4, 0.5, 2), (160, 0.8, 32))
    def test_batches_mix_exactly_as_configured(self, batch_size, fraction, online_entries):
        config = _config(
            batch_size=batch_size, replay_fraction=fraction, capacity=1000, queue_capacity=64
        )
        replay = self._serve(config)
        self._write(replay, config, range(2 * online_entries))
        stream = iter(config.mixed_batches(replay.address, base.QUEUE))
        for first in (0, online_entries):
            stored, is_online, _, weights, new_steps, *_ = next(stream)
            np.testing.assert_array_equal(weights, np.ones(batch_size))
            self.assertEqual(new_steps, online_entries * T)
            self.assertEqual(stored.env_output.observation.shape, [batch_size, 7, 4, 3, 1])
            self.assertEqual(is_online.numpy().sum(), online_entries)
            # Online rows arrive once each and in order.
            np.testing.assert_array_equal(
                stored.learner_update.numpy()[is_online], np.arange(first, first + online_entries)
            )
            np.testing.assert_array_equal(
                stored.env_output.observation.numpy()[:, 0, 0, 0, 0], stored.learner_update.numpy()
            )

    def test_capacity_in_agent_steps_removes_the_oldest(self):
        config = _config(queue_capacity=40)  # 50 agent steps are 10 unrolls
        replay = self._serve(config)
        self._write(replay, config, range(25))
        self.assertEqual(replay.size(), 10)
        self.assertEqual(config.fill_level(10), 1.0)
        stream = iter(dataset.items(replay.address, "replay", 200, in_flight=200))
        drawn = next(stream).learner_update.numpy()
        self.assertEqual(set(drawn), set(range(15, 25)))

    def test_samples_and_weights_follow_priorities(self):
        config = _config(
            batch_size=100, replay_fraction=0.99, capacity=500, priority_exponent=0.5,
            importance_exponent=1.0, queue_capacity=100,
        )  # fmt: skip
        replay = self._serve(config)
        self._write(replay, config, range(4))
        queue = resilient_writer.UnrollStream(replay, {replay.queue: True})
        for number in range(40):
            queue.write([_unroll(number)], fakes.never)
        queue.wait(fakes.never)
        table = reverb.TrajectoryDataset.from_table_signature(
            replay.address, "replay", max_in_flight_samples_per_worker=10
        )
        keys = {int(sample.data.learner_update): int(sample.info.key) for sample in table.take(400)}
        priorities = np.array([1.0, 4.0, 16.0, 0.0])
        replay.update_priorities(np.array([keys[n] for n in range(4)], np.uint64), priorities)
        expected = np.sqrt(priorities) / np.sqrt(priorities).sum()
        stream = config.mixed_batches(replay.address, base.QUEUE).take(30)
        drawn, weights = [], {}
        for batch in stream:
            numbers = batch.unrolls.learner_update.numpy()[1:]
            drawn.extend(numbers)
            weights.update(zip(numbers, batch.importance_weight.numpy()[1:], strict=True))
            self.assertEqual((batch.importance_weight[0], batch.key[0]), (1.0, 0))
            for number, key in zip(numbers, batch.key.numpy()[1:], strict=True):
                self.assertEqual(keys[number], key)
        # Five standard deviations of a frequency in 2970 draws are below 0.046.
        frequencies = np.bincount(drawn, minlength=4) / len(drawn)
        np.testing.assert_allclose(frequencies, expected, atol=0.046)
        self.assertEqual(frequencies[3], 0)
        for number in range(3):  # 1 / P over the largest of them
            np.testing.assert_allclose(weights[number], expected[0] / expected[number], rtol=1e-5)

    def test_zero_states_for_replayed_unrolls_only(self):
        config = _config(core_state="zero")
        signature = fakes.signature(SPEC, (tf.ones([1, 3]),), unroll_length=5, frame_stack=2)
        served = server.ReplayServer(config, signature, self._folder / "replay")
        self.addCleanup(served.stop)
        replay = served.connect()
        target = self._stream(replay, config)
        for number in range(3):
            target.write(
                [_unroll(number)._replace(core_state=(np.ones(3, np.float32),))], fakes.never
            )
        batch = next(iter(config.mixed_batches(replay.address, base.QUEUE)))
        np.testing.assert_array_equal(
            batch.unrolls.core_state[0], np.array([[1.0], [0], [0], [0]]) * np.ones(3)
        )

    def test_full_queue_blocks_the_writer_until_stopped(self):
        config = _config(queue_capacity=2)
        replay = self._serve(config)
        target = self._stream(replay, config)
        for number in range(4):
            target.write([_unroll(number)], fakes.never)
        looks = iter([False, False, True])
        target.wait(lambda: next(looks))
        self.assertEqual(replay.client.server_info()[base.QUEUE].current_size, 2)
        next(iter(config.mixed_batches(replay.address, base.QUEUE)))
        target.wait(fakes.never)


class SchemeTest(parameterized.TestCase):
    @parameterized.parameters(
        ("mixed", {"core_state": "none"}, "core_state", "none"),
        ("mixed", {"priority_exponent": 1.5}, "priority_exponent", 1.5),
        ("mixed", {"replay_fraction": 1.0}, "replay_fraction", 1.0),
        ("mixed", {"replay_fraction": 0.7}, "replay_fraction", 0.7, 2.8),
        ("mixed", {"batch_size": 0}, "batch_size", 0),
        ("mixed", {"batch_size": 10**8}, "batch_size"),
        ("mixed", {"capacity": 19}, "capacity", 19, 20),
        ("online", {"queue_capacity": 0}, "queue_capacity", 0),
        ("online", {"address": "a,b"}, "address", "a,b"),
        ("alternating", {"replay_ratio": 0.0}, "replay_ratio", 0.0),
        ("alternating", {"replay_ratio": 1e4}, "replay_ratio", 10000.0),
        ("replay_only", {"steps_per_update": 0}, "steps_per_update", 0),
        ("replay_only", {"warm_up": -1}, "warm_up", -1),
        ("replay_only", {"warm_up": 51}, "capacity", 50, 51),
    )
    def test_bad_value_is_rejected(self, scheme, overrides, *named):
        with messages.raises(ValueError, *named):
            _config(registry.config_class(scheme), **overrides)

    def test_unknown_scheme_is_rejected_with_close_names(self):
        with messages.raises(ValueError, "scheme", "sequnces", "sequences"):
            registry.config_class("sequnces")

    @parameterized.parameters(*registry.names())
    def test_defaults_are_valid(self, scheme):
        config = registry.config_class(scheme)()
        self.assertEqual(config.scheme, scheme)
        self.assertGreater(config.steps_per_update, 0)


if __name__ == "__main__":
    absltest.main()
