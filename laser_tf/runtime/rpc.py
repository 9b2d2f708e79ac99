"""Calls between the processes of a sweep: JSON and bytes over gRPC.

Like Reverb's own port this one knows no password: see `runtime.private_network`.
"""

import concurrent.futures
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

# Read when it is imported. What it says of lost connections is told by the errors below.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
os.environ.setdefault("grpc_proxy", "")  # as in `replay.connection`
# What it would mend in a forked child sometimes aborts it, before `supervisor` gets to its command.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc

_SERVICE = "laser_tf.Sweep"
_OPTIONS = (
    ("grpc.max_send_message_length", -1),  # weights may be large
    ("grpc.max_receive_message_length", -1),
    ("grpc.so_reuseport", 0),  # two servers on one port would share its callers
)


class Message(NamedTuple):
    """What is asked or answered."""

    values: dict[str, Any]  # of JSON's types
    blob: bytes = b""


class RefusedError(ValueError):
    """The other side does not accept what was asked; the message says why."""


class UnreachableError(ConnectionError):
    """Nobody answers."""


class Server:
    """Answers calls in threads until it is stopped."""

    def __init__(self, methods: Mapping[str, Callable[[Message], Message]], port: int):
        """Starts to listen.

        Args:
          methods: name -> what answers it; a ValueError of theirs is raised by the caller too.
          port: to listen on; 0 takes a free one.

        Raises:
          ValueError: if the port is in use.
        """
        self._server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(max_workers=16), options=_OPTIONS
        )
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(_guarded(method), _decode, _encode)
            for name, method in methods.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(_SERVICE, handlers),)
        )
        try:
            self.port = self._server.add_insecure_port(f"[::]:{port}")
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise ValueError(f"port {port} is in use: choose another, or 0 for a free one")
        self._server.start()

    def stop(self) -> None:
        """Ends at once; calls that wait get an error."""
        self._server.stop(grace=None)


class Client:
    """Calls a server."""

    def __init__(self, address: str):
        """Connects to "host:port" with the first call."""
        self.address = address
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)

    def call(
        self, method: str, values: dict[str, Any], blob: bytes = b"", *, seconds: float = 20.0
    ) -> Message:
        """Asks and waits for the answer.

        Raises:
          RefusedError: if the server refuses.
          UnreachableError: if no answer comes within some seconds.
        """
        call = self._channel.unary_unary(f"/{_SERVICE}/{method}", _encode, _decode)
        try:
            return call(Message(values, blob), timeout=seconds)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                raise RefusedError(error.details()) from None
            raise UnreachableError(
                f"no answer from {self.address} ({error.code().name.lower()}: {error.details()})"
            ) from None

    def close(self) -> None:
        """Hangs up."""
        self._channel.close()


def _guarded(method: Callable[[Message], Message]) -> Callable[[Message, Any], Message]:
    def answer(message: Message, context: grpc.ServicerContext) -> Message:
        try:
            return method(message)
        except ValueError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))

    return answer


def _encode(message: Message) -> bytes:
    header = json.dumps(message.values).encode()
    return len(header).to_bytes(8, "little") + header + message.blob


def _decode(data: bytes) -> Message:
    end = 8 + int.from_bytes(data[:8], "little")
    return Message(json.loads(data[8:end]), data[end:])
