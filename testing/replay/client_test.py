"""Tests of a learner's replay, on its own server and on a server outside the run."""

import dataclasses
import pathlib
import tempfile
import threading
from concurrent import futures
from unittest import mock

import grpc
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.replay import (
    client,
    connection,
    lease,
    resilient_writer,
    server,
    stored_unroll,
)
from laser_tf.replay.schemes import base, contextual, mixed, replay_only, sequences
from testing import fakes, folders, messages

T = 5
SPEC = fakes.image_spec((4, 3, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=T, frame_stack=2)
RUN = pathlib.Path("/runs/a")


def _config(scheme: type[base.ReplayScheme] = mixed.Mixed, **overrides) -> base.ReplayScheme:
    values = {"unroll_length": T, "frame_stack": 2, "batch_size": 16}
    values |= {"capacity": 1000, "queue_capacity": 100}
    return scheme(**(values | overrides))


class ReplayClientTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        # A server that is slow on a busy machine is not silent.
        self.enter_context(mock.patch.object(connection, "POLL_TIMEOUT_SECONDS", 30))

    def _serve(self, config: base.ReplayScheme, is_external: bool = True) -> base.ReplayScheme:
        """Starts a server; returns the configuration with its address."""
        self._path = pathlib.Path(tempfile.mkdtemp(dir=self._folder)) / "replay"
        self._server = server.ReplayServer(config, SIGNATURE, self._path, is_external=is_external)
        self.addCleanup(self._server.stop)
        return dataclasses.replace(config, address=f"localhost:{self._server.port}")

    def _open(self, config: base.ReplayScheme) -> client.ReplayClient:
        replay = client.connect_external(config, SIGNATURE, RUN)
        self.addCleanup(replay.stop)
        return replay

    @parameterized.parameters(False, True)
    def test_only_its_own_server_is_saved(self, is_own):
        self._serve(_config(), is_external=False)
        replay = client.ReplayClient(self._server.connect(), self._server if is_own else None)
        replay.checkpoint()
        self.assertEqual(self._path.exists(), is_own)

    def test_replaced_server_is_checked(self):
        config = self._serve(_config())
        addresses = [config.address]
        replay = connection.ReplayConnection(lambda: addresses[-1], _config())
        replay.check(SIGNATURE)
        self._server.stop()
        addresses.append(self._serve(_config(priority_exponent=0.9)).address)
        with mock.patch.object(connection, "POLL_TIMEOUT_SECONDS", 1):
            with messages.raises(ValueError, "priority_exponent", 0.9):
                replay.wait(fakes.never)

    @parameterized.parameters(
        (replay_only.ReplayOnly, {}),
        (sequences.Sequences, {"sequence_length": 2 * T, "sequence_overlap": T, "burn_in": 0}),
    )
    def test_capacity_below_the_warm_up_is_rejected(self, scheme, overrides):
        there = _config(scheme, steps_per_update=20 * T, capacity=40 * T, **overrides)
        config = self._serve(there)
        larger = dataclasses.replace(config, capacity=200 * T, warm_up=40 * T)
        self._open(larger).stop()
        with messages.raises(ValueError, config.address, 40 * T, "warm_up", 41 * T):
            self._open(dataclasses.replace(larger, warm_up=41 * T))

    def test_contextual_sequences_need_no_server_capacity(self):
        config = _config(
            contextual.Contextual,
            sequence_length=2 * T,
            sequence_overlap=T,
            warm_up=180 * T,
            queue_capacity=20,
        )
        self._open(self._serve(config))

    def test_another_service_is_rejected(self):
        other = grpc.server(futures.ThreadPoolExecutor(1))
        self.addCleanup(other.stop, None)
        address = f"localhost:{other.add_insecure_port('localhost:0')}"
        other.start()
        with messages.raises(errors.ConfigError, address, "replay.address"):
            self._open(_config(address=address))

    def test_silent_server_is_rejected(self):
        with (
            mock.patch.object(connection, "TIMEOUT_SECONDS", 1),
            messages.raises(errors.ConfigError, "localhost:1", "replay.address"),
        ):
            self._open(_config(address="localhost:1"))

    def test_server_that_stops_during_the_lease_is_rejected(self):
        config = self._serve(_config())
        read = lease.Lease._read

        def stop_and_read(held):
            self._server.stop()
            return read(held)

        self.enter_context(mock.patch.object(lease.Lease, "_read", stop_and_read))
        with (
            mock.patch.object(connection, "TIMEOUT_SECONDS", 1),
            messages.raises(errors.ConfigError, config.address, "replay.address"),
        ):
            self._open(config)

    def test_server_of_a_run_is_rejected(self):
        config = self._serve(_config(), is_external=False)
        with messages.raises(errors.ConfigError, config.address, "launch.replay_server"):
            self._open(config)

    def test_new_run_logs_existing_experience(self):
        config = self._serve(_config())
        with self.assertNoLogs(level="WARNING"):
            client.connect_external(config, SIGNATURE, RUN, is_new=True).stop()
        replay = connection.ReplayConnection(config.address, config)
        stream = resilient_writer.UnrollStream(replay, config.unroll_tables(replay.queue))
        for _ in range(12):
            stream.write([stored_unroll.blank(SIGNATURE)], fakes.never)
        stream.wait(fakes.never)
        stream.close()
        with self.assertLogs(level="WARNING") as logs:
            client.connect_external(config, SIGNATURE, RUN, is_new=True).stop()
        (line,) = logs.output
        messages.assert_names(line, config.address, 24, "--checkpoint_folder")
        with self.assertNoLogs(level="WARNING"):
            client.connect_external(config, SIGNATURE, RUN).stop()

    def test_second_run_is_rejected_until_the_first_stops(self):
        config = self._serve(_config())
        first = self._open(config)
        before = set(threading.enumerate())
        with messages.raises(lease.LeaseTakenError, config.address, RUN):
            client.connect_external(config, SIGNATURE, RUN.with_name("b"))
        started = [thread.name for thread in set(threading.enumerate()) - before]
        self.assertNotIn("replay poll", started)  # It would poll the server forever.
        first.stop()
        client.connect_external(config, SIGNATURE, RUN.with_name("b")).stop()


if __name__ == "__main__":
    absltest.main()
