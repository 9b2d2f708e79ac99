"""Calls between processes: what is said arrives, refusals and silence are told apart."""

import os
import subprocess
import threading
from unittest import mock

from absl.testing import absltest

from laser_tf.runtime import rpc


def _echo(message: rpc.Message) -> rpc.Message:
    return rpc.Message({"got": message.values}, message.blob[::-1])


def _refuse(_: rpc.Message) -> rpc.Message:
    raise ValueError("agent_07 is running already: use another --name")


class RpcTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._server = rpc.Server({"echo": _echo, "refuse": _refuse}, port=0)
        self.addCleanup(self._server.stop)
        self._client = rpc.Client(f"localhost:{self._server.port}")
        self.addCleanup(self._client.close)

    def test_values_and_bytes_arrive(self):
        answer = self._client.call("echo", {"a": [1, None, 2.5], "b": "ü"}, b"\x00\x01")
        self.assertEqual(answer, rpc.Message({"got": {"a": [1, None, 2.5], "b": "ü"}}, b"\x01\x00"))

    def test_large_weights_arrive(self):
        weights = bytes(20_000_000)
        self.assertLen(self._client.call("echo", {}, weights).blob, len(weights))

    def test_a_refusal_keeps_its_words(self):
        with self.assertRaisesRegex(rpc.RefusedError, "^agent_07 is running already: use another"):
            self._client.call("refuse", {})

    def test_a_proxy_for_web_pages_is_not_asked(self):
        with mock.patch.dict(os.environ, {"http_proxy": "http://localhost:9"}):
            client = rpc.Client(f"127.0.0.1:{self._server.port}")
            self.addCleanup(client.close)
            self.assertEqual(client.call("echo", {}, seconds=5.0).values, {"got": {}})

    def test_processes_can_be_started_while_there_are_calls(self):
        client = rpc.Client("localhost:9")
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

        slow = rpc.Server({"wait": wait}, port=0)
        self.addCleanup(slow.stop)
        client = rpc.Client(f"localhost:{slow.port}")
        with self.assertRaises(rpc.UnreachableError):
            client.call("wait", {}, seconds=0.2)

    def test_a_taken_port_is_refused(self):
        with self.assertRaisesRegex(ValueError, f"port {self._server.port} is in use"):
            rpc.Server({}, self._server.port)


if __name__ == "__main__":
    absltest.main()
