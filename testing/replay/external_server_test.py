"""A server that is no part of a run: earlier runs, servers of other runs."""

import dataclasses
import pathlib
import tempfile
import threading
from concurrent import futures
from unittest import mock

import grpc
from absl.testing import absltest, parameterized

from laser_tf.replay import (
    connection,
    external_server,
    lease,
    server,
    server_health,
    standalone,
    stored_unroll,
    writers,
)
from laser_tf.replay.schemes import base, contextual, mixed, replay_only, sequences
from testing import fakes, messages

T = 5
SPEC = fakes.image_spec((4, 3, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=T, frame_stack=2)


def _never() -> bool:
    return False


def _config(scheme: type[base.ReplayScheme] = mixed.Mixed, **overrides) -> base.ReplayScheme:
    values = {
        "unroll_length": T,
        "frame_stack": 2,
        "batch_size": 16,
        "capacity": 1000,
        "queue_capacity": 100,
    }
    return scheme(**(values | overrides))


class _ServerTestCase(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        # A server that is slow on a busy machine is not silent.
        self.enter_context(mock.patch.object(connection, "POLL_TIMEOUT_SECONDS", 30))
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def _serve(self, config: base.ReplayScheme) -> base.ReplayScheme:
        """Starts a server; returns the configuration with its address."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self._folder))
        self._server = standalone.start(config, SIGNATURE, folder, 0, [base.QUEUE])
        self.addCleanup(self._server.stop)
        return dataclasses.replace(config, address=f"localhost:{self._server.port}")

    def _open(self, config: base.ReplayScheme, run: str = "run") -> external_server.ExternalReplay:
        replay = external_server.connect(config, SIGNATURE, run)
        self.addCleanup(replay.stop)
        return replay


class OtherReplayTest(_ServerTestCase):
    """Servers that were started with another configuration than the run's."""

    @parameterized.parameters((0.9, 0.6), (0.9, 0.0), (0.0, 0.6))
    def test_another_sampler_is_rejected(self, there, here):
        config = self._serve(_config(priority_exponent=there))
        with messages.raises(ValueError, config.address, "priority_exponent", f"{here:g}"):
            self._open(dataclasses.replace(config, priority_exponent=here))
        self._open(config)

    def test_server_that_takes_the_place_of_another_is_checked(self):
        replay = self._open(self._serve(_config()))
        replay.stop()
        self._serve(_config(priority_exponent=0.9))
        connected = replay.connection
        connected._find = lambda: f"localhost:{self._server.port}"
        connected._follow()
        with messages.raises(ValueError, "priority_exponent", 0.9):
            connected.poll()

    @parameterized.parameters(
        (replay_only.ReplayOnly, {}),
        (
            sequences.Sequences,
            {"sequence_length": 2 * T, "sequence_overlap": T, "burn_in": 0},
        ),
    )
    def test_capacity_below_the_warm_up_is_rejected(self, scheme, overrides):
        there = _config(scheme, steps_per_update=20 * T, capacity=40 * T, **overrides)
        config = self._serve(there)
        larger = dataclasses.replace(config, capacity=200 * T, warm_up=40 * T)
        self._open(larger).stop()
        with messages.raises(ValueError, config.address, 40 * T, "warm_up", 41 * T):
            self._open(dataclasses.replace(larger, warm_up=41 * T))

    def test_sequences_that_the_learner_stores_need_no_capacity(self):
        config = _config(
            contextual.Contextual,
            sequence_length=2 * T,
            sequence_overlap=T,
            warm_up=180 * T,
            queue_capacity=20,
        )
        self._open(self._serve(config))

    def test_other_unrolls_are_rejected_with_the_address(self):
        config = self._serve(_config())
        other = fakes.signature(SPEC, (), unroll_length=T + 1, frame_stack=2)
        with messages.raises(ValueError, config.address):
            external_server.connect(config, other, "run")

    def test_another_service_is_rejected(self):
        other = grpc.server(futures.ThreadPoolExecutor(1))
        self.addCleanup(other.stop, None)
        port = other.add_insecure_port("localhost:0")
        other.start()
        with messages.raises(ValueError, f"localhost:{port}"):
            external_server.connect(_config(address=f"localhost:{port}"), SIGNATURE, "a")

    def test_server_of_a_run_is_rejected(self):
        embedded = server.ReplayServer(_config(), SIGNATURE, self._folder / "replay")
        self.addCleanup(embedded.stop)
        config = _config(address=f"localhost:{embedded.port}")
        with messages.raises(ValueError, "launch.replay_server"):
            external_server.connect(config, SIGNATURE, "run")

    def test_silent_server_is_named(self):
        with (
            mock.patch.object(connection, "TIMEOUT_SECONDS", 1),
            messages.raises(ValueError, "localhost:1", "replay.address"),
        ):
            external_server.connect(_config(address="localhost:1"), SIGNATURE, "run")


class EarlierRunTest(_ServerTestCase):
    def test_new_run_logs_existing_experience(self):
        config = self._serve(_config())
        with self.assertNoLogs(level="WARNING"):
            external_server.connect(config, SIGNATURE, "a", is_new=True).stop()
        replay = connection.ReplayConnection(config.address, config)
        stream = writers.UnrollStream(replay, config.unroll_tables(replay.queue))
        for _ in range(12):
            stream.write([stored_unroll.blank(SIGNATURE)], _never)
        stream.wait(_never)
        stream.close()
        with self.assertLogs(level="WARNING") as logs:
            external_server.connect(config, SIGNATURE, "b", is_new=True).stop()
        (line,) = logs.output
        messages.assert_names(line, config.address, 24, "--checkpoint_folder")
        with self.assertNoLogs(level="WARNING"):
            external_server.connect(config, SIGNATURE, "b").stop()


class LookTest(_ServerTestCase):
    def test_looking_repeatedly_creates_no_classes(self):
        # Decoding a signature creates some, and many stay: memory grew with every look.
        replay = self._open(self._serve(_config(priority_exponent=1.0)))
        health = server_health.Health(self._server, "replay", None)
        before = set(tuple.__subclasses__())
        for _ in range(3):
            self.assertTrue(replay.connection.poll())
            self._server.fill_levels()
            health.line()
        self.assertEmpty(set(tuple.__subclasses__()) - before)


class SecondRunTest(_ServerTestCase):
    def test_second_run_is_rejected_until_the_first_stops(self):
        config = self._serve(_config())
        first = self._open(config, "host:/runs/a")
        before = set(threading.enumerate())
        with messages.raises(lease.LeaseTakenError, config.address, "host:/runs/a"):
            external_server.connect(config, SIGNATURE, "host:/runs/b")
        started = [thread.name for thread in set(threading.enumerate()) - before]
        self.assertNotIn("replay poll", started)  # It would poll the server forever.
        first.stop()
        self._open(config, "host:/runs/b")


if __name__ == "__main__":
    absltest.main()
