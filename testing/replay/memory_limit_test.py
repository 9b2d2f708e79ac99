"""A replay server's memory: real data beyond a limit, in a real server."""

import contextlib
import ctypes
import logging
import re
import threading
from collections.abc import Iterator
from unittest import mock

import numpy as np
import psutil
from absl.testing import absltest, parameterized

from laser_tf.replay import client, dataset, memory, resilient_writer, server, stored_unroll
from laser_tf.replay.schemes import contextual, episodes, mixed, online, sequences
from testing import fakes, folders, messages, processes

T = 5
SPEC = fakes.image_spec((64, 64, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=T, frame_stack=1)
UNROLL_BYTES = 64 * 64 * (T + 1)
CONFIG = mixed.Mixed(
    unroll_length=T, frame_stack=1, batch_size=4, capacity=10_000 * T, queue_capacity=20_000
)
ROOM = 20_000_000  # bytes


@contextlib.contextmanager
def _machine(free: float, total: float) -> Iterator[None]:
    """Simulates the memory of a machine, in bytes."""
    state = psutil.virtual_memory()._replace(available=free, total=total)
    with mock.patch.object(psutil, "virtual_memory", return_value=state):
        yield


class MemoryLimitTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._server = server.ReplayServer(CONFIG, SIGNATURE, self._folder / "replay")
        self.addCleanup(self._server.stop)
        self._replay = self._server.connect()
        self._target = resilient_writer.UnrollStream(self._replay, {"replay": True})
        self._random = np.random.default_rng(0)
        self._number = 0
        self._write(100)  # buffers of gRPC's are part of what the process takes anyway
        self._replay.client.reset("replay")
        ctypes.CDLL(None).malloc_trim(0)  # what earlier tests have left is no room
        base = memory.resident_bytes()
        self._bytes = base + ROOM
        self._limit = memory.MemoryLimit(self._server, "replay", self._bytes, base)

    def _write(self, unrolls: int) -> None:
        """Writes unrolls that cannot be compressed."""
        blank = stored_unroll.blank(SIGNATURE)
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
        drawn = dataset.items(self._replay.address, "replay", 4000, in_flight=500)
        return set(next(iter(drawn)).learner_update.numpy().tolist())

    def test_process_beyond_its_limit_loses_the_oldest_items(self):
        most = 0
        with self.assertLogs(level="WARNING") as logs:
            for _ in range(60):
                self._write(50)  # 74 MB in all
                self._limit.enforce()
                most = max(most, memory.resident_bytes())
        # Some for what is deleted and not freed yet.
        self.assertLess(most, self._bytes + 0.5 * ROOM)
        self.assertLess(memory.resident_bytes(), self._bytes + 0.25 * ROOM)
        size = self._replay.size()
        self.assertBetween(size, 0.3 * ROOM / UNROLL_BYTES, 1.1 * ROOM / UNROLL_BYTES)
        messages.assert_names(logs.output[0], "replay.capacity", "--memory_limit_gb")
        self.assertLess(len(logs.output), 6)
        kept = self._numbers()
        self.assertIn(self._number - 1, kept)
        self.assertGreaterEqual(min(kept), self._number - size)  # the newest, without a gap

    def test_process_below_its_limit_keeps_all_items(self):
        self._write(200)  # 5 MB
        with self.assertNoLogs(level="WARNING"):
            self._limit.enforce()
        self.assertEqual(self._replay.size(), 200)

    def test_full_disk_empties_replay_within_the_limit(self):
        self._write(400)
        most, sizes = 0, []
        with (
            mock.patch.object(self._server, "list_keys", side_effect=RuntimeError("disk full")),
            self.assertLogs(level="WARNING") as logs,
        ):
            for _ in range(60):
                self._write(50)  # 74 MB in all
                self._limit.enforce()
                most = max(most, memory.resident_bytes())
                sizes.append(self._replay.size())
        messages.assert_names(logs.output[-1], "disk full")
        self.assertIn(0, sizes)
        self.assertLess(most, self._bytes + 0.25 * ROOM)

    def test_without_memory_left_the_oldest_items_are_removed(self):
        self._write(200)
        free = mock.Mock(side_effect=[True, False, False, *[True] * 10])
        self.enter_context(mock.patch.object(memory, "has_room", free))
        limit = memory.MemoryLimit(self._server, "replay", None, 0)
        with self.assertLogs(level="WARNING"):
            for size in (200, 190, 190, 190):
                limit.enforce()
                self.assertLessEqual(self._replay.size(), size)
        kept = self._numbers()
        self.assertIn(self._number - 1, kept)
        self.assertGreaterEqual(min(kept), self._number - self._replay.size())
        self.assertFalse((self._folder / "replay").exists())  # A run saves replay after weights.
        self._write(50)
        limit.enforce()
        self.assertLessEqual(self._replay.size(), 190)

    def test_repeated_error_is_logged_once(self):
        with (
            mock.patch.object(self._server, "tables", side_effect=RuntimeError("gone")),
            self.assertLogs(level="WARNING") as logs,
        ):
            self._limit.keep_enforcing(mock.Mock(wait=mock.Mock(side_effect=[False, False, True])))
        self.assertLen(logs.output, 1)

    def test_guarded_server_removes_items_until_it_stops(self):
        before = set(threading.enumerate())
        with _machine(0, 10**9), mock.patch.object(memory, "ENFORCEMENT_PERIOD_SECONDS", 0.01):
            served = server.ReplayServer(CONFIG, SIGNATURE, self._folder / "guarded")
            replay = served.connect()
            self._target = resilient_writer.UnrollStream(replay, {"replay": True})
            self._write(30)
            served.guard_memory()
            processes.wait_until(lambda: replay.size() == CONFIG.batch_size)
            served.stop()
        started = set(threading.enumerate()) - before
        self.assertNotIn("replay memory", [thread.name for thread in started])

    def test_min_memory_covers_a_queue_and_a_batch(self):
        self.assertEqual(CONFIG.min_memory_unrolls, 20_000 + 4)


class MemoryEstimateTest(folders.FolderTest):
    """Estimates for unrolls of five steps, which store six images."""

    @parameterized.named_parameters(
        ("mixed", mixed.Mixed, {}),
        ("episodes", episodes.Episodes, {}),
        (
            "sequences",
            sequences.Sequences,
            {"sequence_length": 2 * T, "sequence_overlap": T, "burn_in": T},
        ),
        ("contextual", contextual.Contextual, {"sequence_length": 2 * T, "sequence_overlap": T}),
    )
    def test_capacity_beyond_the_memory_is_logged_once(self, scheme, values):
        config = scheme(unroll_length=T, frame_stack=1, batch_size=4, capacity=10_000 * T, **values)
        in_reverb = memory.reverb_unroll_bytes(SIGNATURE)
        full = config.capacity / T * (in_reverb if scheme.replay_table else UNROLL_BYTES)

        def start(left: float) -> list[str]:
            with (
                _machine(left, 2 * full),
                mock.patch.object(logging.getLogger(), "handle") as handle,
            ):
                path = self._folder / f"{left:.0f}"
                served = server.ReplayServer(config, SIGNATURE, path)
                self.addCleanup(served.stop)
                replay = client.ReplayClient(served.connect(), served)
                config.make_learner_client(replay, SIGNATURE, path)
            lines = [call.args[0].getMessage() for call in handle.call_args_list]
            return [line for line in lines if "replay.capacity" in line]

        (line,) = start(0.6 * full)
        self.assertIn("replay.capacity=", line)
        *_, fitting = re.findall(r"replay\.capacity=(\d+)", line)
        # A tenth of the estimate stays with the rest of the run.
        self.assertBetween(int(fitting) / config.capacity, 0.4, 0.5)
        self.assertEmpty(start(1.2 * full))

    def test_capacity_beyond_the_limit_of_the_process_is_logged(self):
        full = CONFIG.capacity / T * UNROLL_BYTES
        limit = memory.resident_bytes() + int(0.5 * full)
        with _machine(2 * full, 2 * full), self.assertLogs(level="WARNING") as logs:
            memory.warn_if_too_large(CONFIG, UNROLL_BYTES, limit)
        self.assertTrue(logs.records[0].is_announced)
        *_, fitting = re.findall(r"replay\.capacity=(\d+)", logs.output[0])
        self.assertAlmostEqual(int(fitting) / CONFIG.capacity, 0.5, delta=0.05)

    def test_capacity_of_an_unroll_is_suggested_without_memory(self):
        with _machine(0, 10**9), self.assertLogs(level="WARNING") as logs:
            memory.warn_if_too_large(CONFIG, UNROLL_BYTES)
        *_, fitting = re.findall(r"replay\.capacity=(\d+)", logs.output[0])
        self.assertEqual(int(fitting), T)

    def test_estimate_for_small_unrolls_agrees_with_reverb(self):
        signature = fakes.signature(
            fakes.image_spec((2, 2, 1), 3), (), unroll_length=T, frame_stack=1
        )
        served = server.ReplayServer(CONFIG, signature, self._folder / "replay")
        self.addCleanup(served.stop)
        stream = resilient_writer.UnrollStream(served.connect(), {"replay": True})
        blank = stored_unroll.blank(signature)

        def write(unrolls: int) -> int:
            for _ in range(unrolls):
                stream.write([blank], lambda: False)
            stream.wait(lambda: False)
            return memory.resident_bytes()

        write(500)
        ctypes.CDLL(None).malloc_trim(0)  # what earlier tests have left is no room
        before = memory.resident_bytes()
        measured = (write(5_000) - before) / 5_000
        # At most the estimate, but for the noise of the allocator, and not much less.
        self.assertBetween(measured / memory.reverb_unroll_bytes(signature), 0.5, 1.1)

    def test_without_replay_nothing_is_estimated(self):
        with _machine(0, 10**9), self.assertNoLogs():
            memory.warn_if_too_large(online.Online(unroll_length=T, frame_stack=1), UNROLL_BYTES)


if __name__ == "__main__":
    absltest.main()
