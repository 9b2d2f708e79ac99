"""Calls between processes: what is said arrives, refusals and silence are told apart."""

import os
import pathlib
import subprocess
import tempfile
import threading
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.sweeps import rpc


def _echo(message: rpc.Message) -> rpc.Message:
    return rpc.Message({"got": message.values}, message.blob[::-1])


def _refuse(_: rpc.Message) -> rpc.Message:
    raise ValueError("agent_07 is running already: use another --name")


def _fail(_: rpc.Message) -> rpc.Message:
    raise KeyError("/home/somebody")


SECRET = "5ec2e7"


class RpcTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._calls = []
        self._server = rpc.Server(
            {"echo": self._note_and_echo, "refuse": _refuse, "fail": _fail},
            0,
            SECRET,
            max_bytes=rpc.WEIGHTS_BYTES,
        )
        self.addCleanup(self._server.stop)
        self._client = self._connect()

    def _note_and_echo(self, message: rpc.Message) -> rpc.Message:
        self._calls.append(len(message.blob))
        return _echo(message)

    def _connect(self, secret: str = SECRET, host: str = "localhost") -> rpc.Client:
        client = rpc.Client(f"{host}:{self._server.port}", secret)
        self.addCleanup(client.close)
        return client

    def test_values_and_bytes_arrive(self):
        answer = self._client.call("echo", {"a": [1, None, 2.5], "b": "ü"}, b"\x00\x01")
        self.assertEqual(answer, rpc.Message({"got": {"a": [1, None, 2.5], "b": "ü"}}, b"\x01\x00"))

    def test_large_weights_arrive(self):
        weights = bytes(20_000_000)
        self.assertLen(self._client.call("echo", {}, weights).blob, len(weights))

    def test_a_refusal_keeps_its_words(self):
        with self.assertRaisesRegex(rpc.RefusedError, "^agent_07 is running already: use another"):
            self._client.call("refuse", {})

    def test_who_does_not_know_the_secret_is_refused_before_the_message_is_read(self):
        for secret in ("", "another"):
            with self.assertRaisesRegex(rpc.RefusedError, "secret is missing or wrong: give --sec"):
                self._connect(secret).call("echo", {}, bytes(50_000_000))
        self.assertEmpty(self._calls)
        self._client.call("echo", {})
        self.assertEqual(self._calls, [0])

    def test_messages_are_small_where_no_weights_are_sent(self):
        server = rpc.Server({"echo": _echo}, 0, SECRET)
        self.addCleanup(server.stop)
        client = rpc.Client(f"localhost:{server.port}", SECRET)
        self.addCleanup(client.close)
        with self.assertRaisesRegex(rpc.RefusedError, "larger than max"):
            client.call("echo", {}, bytes(rpc.MESSAGE_BYTES))
        client.call("echo", {}, bytes(rpc.MESSAGE_BYTES - 1000))

    @parameterized.parameters(
        b"", b"12345678", b"\xff" * 100, bytes(8) + b"{}", b"\x02" + bytes(7) + b"[]",
        b"\x01" + bytes(7) + b"{", (100_000).to_bytes(8, "little") + b"[" * 100_000,
    )  # fmt: skip
    def test_what_is_no_message_is_refused(self, data):
        with rpc.grpc.insecure_channel(f"localhost:{self._server.port}") as channel:
            call = channel.unary_unary("/laser_tf.Sweep/echo")
            with self.assertRaisesRegex(rpc.grpc.RpcError, "the message cannot be read"):
                call(data, timeout=20, metadata=(("laser-tf-secret", SECRET),))
        self.assertEmpty(self._calls)

    def test_a_bug_of_the_server_is_not_told_to_its_callers(self):
        with self.assertRaises(rpc.UnreachableError) as context, self.assertLogs() as logs:
            self._client.call("fail", {})
        self.assertIn("the server has failed, see its log", str(context.exception))
        self.assertNotIn("somebody", str(context.exception))
        self.assertIn("/home/somebody", logs.output[0])

    def test_a_sweeps_secret_is_made_once_and_for_its_owner_alone(self):
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        secret = rpc.own_secret(folder)
        self.assertGreaterEqual(len(secret), 32)
        self.assertEqual((folder / "secret").stat().st_mode & 0o777, 0o600)
        self.assertEqual(rpc.own_secret(folder), secret)
        self.assertEqual(rpc.read_secret(folder / "secret"), secret)
        (folder / "secret").write_text("")  # of a crash
        self.assertNotIn(rpc.own_secret(folder), ("", secret))
        for name, message in (("none", "No such file"), ("other", "holds no secret: copy")):
            (folder / "other").write_text("two words")
            with self.assertRaisesRegex(ValueError, message):
                rpc.read_secret(folder / name)

    def test_a_proxy_for_web_pages_is_not_asked(self):
        with mock.patch.dict(os.environ, {"http_proxy": "http://localhost:9"}):
            client = self._connect(host="127.0.0.1")
            self.assertEqual(client.call("echo", {}, seconds=5.0).values, {"got": {}})

    def test_processes_can_be_started_while_there_are_calls(self):
        client = rpc.Client("localhost:9", SECRET)
        self.addCleanup(client.close)
        for _ in range(150):
            with self.assertRaises(rpc.UnreachableError):
                client.call("echo", {}, seconds=0.02)
            # A function to run before the command makes it a fork.
            subprocess.run(["true"], check=True, preexec_fn=lambda: None)

    def test_nobody_there(self):
        self._server.stop()
        with self.assertRaisesRegex(rpc.UnreachableError, "no answer from localhost"):
            self._client.call("echo", {}, seconds=2.0)

    def test_who_takes_too_long(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def wait(message: rpc.Message) -> rpc.Message:
            release.wait(20)
            return message

        slow = rpc.Server({"wait": wait}, 0, SECRET)
        self.addCleanup(slow.stop)
        client = rpc.Client(f"localhost:{slow.port}", SECRET)
        with self.assertRaises(rpc.UnreachableError):
            client.call("wait", {}, seconds=0.2)

    def test_a_taken_port_is_refused(self):
        with self.assertRaisesRegex(ValueError, f"port {self._server.port} is in use"):
            rpc.Server({}, self._server.port, SECRET)


class AddressTest(parameterized.TestCase):
    @parameterized.parameters(
        "nocolon", "host:", ":5000", "host:0", "host:65536", "host:99999999999", "host:-1",
        "host:5000x", "host: 5000", "ho st:5000", "http://host:5000", "::1:5000", "[]:5000",
        "host:5000/path", "host:\u0665\u0660",
    )  # fmt: skip
    def test_what_can_be_no_servers_address_is_refused_at_once(self, address):
        with self.assertRaisesRegex(ValueError, "^use HOST:PORT"):
            rpc.check_address(address)

    def test_a_servers_address_may_have_any_form(self):
        for address in ("localhost:1", "10.0.0.1:65535", "[::1]:5000", "node-7.cluster:5000"):
            rpc.check_address(address)


if __name__ == "__main__":
    absltest.main()
