"""Tests of connections: addresses, liveness and compatible tables."""

import dataclasses
import errno
import socket
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.replay import connection, server, server_address, tables
from laser_tf.replay.schemes import base, episodes, mixed
from testing import fakes, folders, messages

T = 5
SPEC = fakes.image_spec((4, 3, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=T, frame_stack=2)
CONFIG = mixed.Mixed(unroll_length=T, frame_stack=2, batch_size=4, priority_exponent=0.5)
ADDRESS = "localhost:1"


class _WithoutIPv6(socket.socket):
    """Socket of a kernel that was started with `ipv6.disable=1`."""

    def __init__(self, family: int = socket.AF_INET, *args, **kwargs):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        super().__init__(family, *args, **kwargs)


class AddressTest(parameterized.TestCase):
    @parameterized.parameters(socket.socket, _WithoutIPv6)
    def test_port_in_use_is_rejected_with_and_without_ipv6(self, sockets):
        with mock.patch.object(socket, "socket", sockets), socket.create_server(("", 0)) as taken:
            server_address.check_port(0)
            port = taken.getsockname()[1]
            with messages.raises(errors.ConfigError, "port", port):
                server_address.check_port(port)

    def test_host_that_cannot_be_encoded_is_rejected(self):
        with messages.raises(errors.ConfigError, "a..b:80"):
            server_address.check_answers("a..b:80")


class LivenessTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._time = 100.0
        self._liveness = tables.Liveness(clock=lambda: self._time)

    def _answer(self, age: float) -> bool:
        """Records the answer of a server that is `age` seconds old."""
        info = tables.TableInfo()
        info.table_worker_time.sleeping_ms = int(1000 * age)
        return self._liveness.record_answer({"online": info}, ADDRESS)

    def test_aging_server_is_no_restart(self):
        for number in range(5):
            self.assertFalse(self._answer(age=50 + 2 * number))
            self._time += 2
        self.assertEqual(self._liveness.restarts, 0)

    def test_younger_server_is_a_restart(self):
        self._answer(age=50)
        self._time += 2
        self.assertTrue(self._answer(age=1))
        self._time += 2
        self.assertFalse(self._answer(age=3))
        self.assertEqual(self._liveness.restarts, 1)

    def test_start_within_a_long_silence_is_a_restart(self):
        self._answer(age=1)
        self._time += 60
        self.assertTrue(self._answer(age=40))

    def test_moved_server_is_a_restart(self):
        self._liveness.record_move()
        self.assertFalse(self._answer(age=50))  # the first answer
        self._liveness.record_move()
        self.assertTrue(self._answer(age=50))

    def test_lasting_silence_is_logged_once(self):
        self._answer(age=50)
        with self.assertLogs(level="INFO") as logs:
            for _ in range(4):
                self._time += 3
                self._liveness.record_silence(ADDRESS)
                self.assertFalse(self._liveness.is_answering)
            self._time += 1
            self.assertFalse(self._answer(age=63))
        self.assertTrue(self._liveness.is_answering)
        self.assertEqual([record.levelname for record in logs.records], ["WARNING", "INFO"])
        for line in logs.output:
            messages.assert_names(line, ADDRESS)

    def test_short_silence_is_not_logged(self):
        self._answer(age=50)
        with self.assertNoLogs():
            self._time += 3
            self._liveness.record_silence(ADDRESS)
            self._time += 1
            self._answer(age=54)


class CompatibilityTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._server = server.ReplayServer(CONFIG, SIGNATURE, self._folder / "replay")
        self.addCleanup(self._server.stop)

    def _check(self, config=CONFIG, signature=SIGNATURE, queue=base.QUEUE) -> None:
        replay = connection.ReplayConnection(self._server.address, config, queue)
        replay.check(signature)
        # Decoding a signature creates classes that stay alive: memory grew with every poll.
        before = set(tuple.__subclasses__())
        self.assertTrue(replay.poll())
        self._server.fill_levels()
        self.assertEmpty(set(tuple.__subclasses__()) - before)

    def test_same_tables_pass(self):
        self._check()

    def test_missing_queue_is_rejected(self):
        with messages.raises(errors.ConfigError, self._server.address, "'other'", "'queue'"):
            self._check(queue="other")
        with messages.raises(errors.ConfigError, self._server.address, "'other'"):
            connection.ReplayConnection(self._server.address, CONFIG, "other").poll()

    def test_missing_replay_table_is_rejected(self):
        config = episodes.Episodes(unroll_length=T, frame_stack=2, batch_size=4)
        with messages.raises(errors.ConfigError, self._server.address, "'episodes'"):
            self._check(config)

    def test_other_unrolls_are_rejected(self):
        other = fakes.signature(SPEC, (), unroll_length=T + 1, frame_stack=2)
        with messages.raises(errors.ConfigError, self._server.address):
            self._check(signature=other)

    @parameterized.parameters(0.0, 0.9)
    def test_other_priority_exponent_is_rejected(self, exponent):
        config = dataclasses.replace(CONFIG, priority_exponent=exponent)
        remedy = "--config.replay.priority_exponent=0.5"
        with messages.raises(errors.ConfigError, self._server.address, f"{exponent:g}", remedy):
            self._check(config)


if __name__ == "__main__":
    absltest.main()
