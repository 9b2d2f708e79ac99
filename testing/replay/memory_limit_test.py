"""A replay server's memory: real data beyond a limit, in a real server."""

import ctypes
import pathlib
import tempfile
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.replay import (
    dataset,
    memory_limit,
    replay_config,
    server_health,
    standalone,
    writer,
)
from testing import fakes

T = 5
SPEC = fakes.image_spec((64, 64, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=T, frame_stack=1)
UNROLL_BYTES = 64 * 64 * (T + 1)
CONFIG = replay_config.ReplayConfig(
    unroll_length=T, frame_stack=1, batch_size=4, capacity=10_000 * T, queue_capacity=20_000
)
ROOM = 20_000_000  # bytes


class MemoryLimitTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._replay = standalone.start(CONFIG, SIGNATURE, folder, 0, ["online"])
        self.addCleanup(self._replay.stop)
        self._target = writer.UnrollWriter(self._replay, [replay_config.REPLAY])
        self._random = np.random.default_rng(0)
        self._number = 0
        self._write(100)  # buffers of gRPC's are part of what the process takes anyway
        self._replay.client.reset(replay_config.REPLAY)
        ctypes.CDLL(None).malloc_trim(0)  # what earlier tests have left is no room
        base = memory_limit.resident_bytes()
        self._limit = memory_limit.MemoryLimit(
            self._replay, replay_config.REPLAY, base + ROOM, base
        )

    def _write(self, unrolls: int) -> None:
        """Writes unrolls that cannot be compressed."""
        blank = tf.nest.map_structure(
            lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), SIGNATURE
        )
        shape = blank.env_output.observation.shape
        for _ in range(unrolls):
            picture = self._random.integers(0, 256, shape, np.uint8)
            unroll = blank._replace(
                env_output=blank.env_output._replace(observation=picture),
                learner_update=np.int64(self._number),
            )
            self._target.write([unroll], lambda: False)
            self._number += 1
        self._target.wait(lambda: False)

    def _numbers(self) -> set[int]:
        drawn = dataset.unrolls(self._replay.address, replay_config.REPLAY, 4000, in_flight=500)
        return set(next(iter(drawn)).learner_update.numpy().tolist())

    def test_beyond_it_the_oldest_are_removed_and_the_process_grows_no_more(self):
        most = 0
        with self.assertLogs(level="WARNING") as logs:
            for _ in range(60):
                self._write(50)  # 74 MB in all
                self._limit.enforce()
                most = max(most, memory_limit.resident_bytes())
        # Some for what is deleted and not freed yet.
        self.assertLess(most, self._limit.bytes + 0.5 * ROOM)
        self.assertLess(memory_limit.resident_bytes(), self._limit.bytes + 0.25 * ROOM)
        size = self._replay.size()
        self.assertBetween(size, 0.3 * ROOM / UNROLL_BYTES, 1.1 * ROOM / UNROLL_BYTES)
        self.assertRegex(logs.output[0], "more than its limit .* keeps the newest [0-9,]+ items")
        self.assertLess(len(logs.output), 6)
        kept = self._numbers()
        self.assertIn(self._number - 1, kept)
        self.assertGreaterEqual(min(kept), self._number - size)  # the newest, without a gap
        line = server_health.Health(self._replay, replay_config.REPLAY, self._limit).line()
        self.assertRegex(line, rf"{size:,} items .*online 0/20000; .* GB of \d")

    def test_below_it_nothing_happens(self):
        self._write(200)  # 5 MB
        with self.assertNoLogs(level="WARNING"):
            self._limit.enforce()
        self.assertEqual(self._replay.size(), 200)

    def test_where_nothing_can_be_saved_replay_is_emptied_rather_than_the_process_killed(self):
        self._write(2000)
        with (
            mock.patch.object(self._replay, "checkpoint", side_effect=RuntimeError("disk full")),
            self.assertLogs(level="WARNING") as logs,
        ):
            self._limit.enforce()
        self.assertIn("replay is emptied", logs.output[-1])
        self.assertIn("disk full", logs.output[-1])
        self.assertEqual(self._replay.size(), 0)
        self.assertLess(memory_limit.resident_bytes(), self._limit.bytes)

    def test_where_it_was_emptied_once_the_process_still_grows_no_more(self):
        self._write(400)
        self._replay.checkpoint()
        self._limit.note_checkpoint()  # what it lists is gone when replay has been emptied
        most, sizes = 0, []
        with (
            mock.patch.object(self._replay, "checkpoint", side_effect=RuntimeError("disk full")),
            self.assertLogs(level="WARNING"),
        ):
            for _ in range(60):
                self._write(50)  # 74 MB in all
                self._limit.enforce()
                most = max(most, memory_limit.resident_bytes())
                sizes.append(self._replay.size())
        self.assertIn(0, sizes)
        self.assertLess(most, self._limit.bytes + 0.25 * ROOM)

    def test_what_queues_and_a_batch_take_is_counted(self):
        bytes_ = standalone.least_memory(CONFIG, SIGNATURE, queues=2)
        self.assertAlmostEqual(bytes_ / (UNROLL_BYTES * (2 * 20_000 + 4)), 1.0, delta=0.02)


if __name__ == "__main__":
    absltest.main()
