"""Calls between the processes of a sweep: JSON and bytes over gRPC.

Who calls has to know the sweep's secret, a file that only its owner can read. It is sent as it is:
no shield against who can read the network's traffic. Reverb's port knows none: see
`host.private_network`.
"""

import concurrent.futures
import hmac
import json
import logging
import os
import pathlib
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

# Read when it is imported. What it says of lost connections is told by the errors below.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
os.environ.setdefault("grpc_proxy", "")  # as in `replay.connection`
# What it would mend in a forked child sometimes aborts it, before `supervisor` gets to its command.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc

_SERVICE = "laser_tf.Sweep"
_SECRET_KEY = "laser-tf-secret"  # of a call's metadata
MESSAGE_BYTES = 2**20  # of the largest message, where no weights are sent
WEIGHTS_BYTES = 2**29  # where they are: with the optimiser's state three times the network
SECRET_FILE = "secret"  # in a sweep's folder
_SENDING = (("grpc.max_send_message_length", -1),)  # limits are the receiver's


_REFUSALS = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,  # a message that is too large
)


class Message(NamedTuple):
    """What is asked or answered."""

    values: dict[str, Any]  # of JSON's types
    blob: bytes = b""


class RefusedError(ValueError):
    """The other side does not accept what was asked; the message says why."""


class UnreachableError(ConnectionError):
    """Nobody answers."""


def check_address(address: str) -> None:
    """Raises ValueError, with the remedy, for what cannot be a server's "host:port"."""
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 1 <= int(port[:6]) <= 65535
    is_bracketed = host.startswith("[") and host.endswith("]")  # an IPv6 address, with colons
    if not is_port or not host.strip("[]") or any(map(str.isspace, host)):
        raise ValueError("use HOST:PORT, with a port from 1 to 65535, e.g. localhost:5000")
    if "/" in host or (":" in host and not is_bracketed):
        raise ValueError(
            "use HOST:PORT without a protocol or path, and an IPv6 address in [brackets]"
        )


def own_secret(folder: pathlib.Path) -> str:
    """The secret in a sweep's folder, made (with mode 0600) where there is none.

    Raises:
      ValueError: if it cannot be read or written.
    """
    path = folder / SECRET_FILE
    try:
        if not path.exists() or not path.read_text().strip():
            temporary = path.with_suffix(".tmp")
            temporary.unlink(missing_ok=True)
            temporary.touch(mode=0o600, exist_ok=False)
            temporary.write_text(f"{secrets.token_hex(32)}\n")
            temporary.replace(path)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None
    return read_secret(path)


def read_secret(path: pathlib.Path) -> str:
    """The secret in a file.

    Raises:
      ValueError: if it cannot be read, or holds something else.
    """
    try:
        secret = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ValueError(f"cannot read the sweep's secret in {path}: {reason}") from None
    if not (secret.isascii() and secret.isalnum()):
        raise ValueError(f"{path} holds no secret: copy the file from the sweep's folder")
    return secret


class _Gate(grpc.ServerInterceptor):
    """Turns away who does not know the secret, before the message is read."""

    def __init__(self, secret: str):
        self._secret = secret.encode()

        def refuse(_: Any, context: grpc.ServicerContext) -> None:
            context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                "the sweep's secret is missing or wrong: give --secret_file, a copy of the file "
                f"{SECRET_FILE!r} in the sweep's folder",
            )

        self._refusal = grpc.stream_stream_rpc_method_handler(refuse)

    def intercept_service(
        self, continuation: Callable, details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler:
        """Lets a call through, or not."""
        given = dict(details.invocation_metadata).get(_SECRET_KEY, "")
        known = hmac.compare_digest(given.encode(), self._secret)
        return continuation(details) if known else self._refusal


class Server:
    """Answers calls in threads until it is stopped."""

    def __init__(
        self,
        methods: Mapping[str, Callable[[Message], Message]],
        port: int,
        secret: str,
        *,
        max_bytes: int = MESSAGE_BYTES,
    ):
        """Starts to listen.

        Args:
          methods: name -> what answers it; a ValueError of theirs is raised by the caller too.
          port: to listen on; 0 takes a free one.
          secret: that callers must know.
          max_bytes: of a message; larger ones are refused unread.

        Raises:
          ValueError: if the port is in use.
        """
        self._server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(max_workers=16),
            interceptors=[_Gate(secret)],
            options=(
                *_SENDING,
                ("grpc.max_receive_message_length", max_bytes),
                ("grpc.so_reuseport", 0),  # two servers on one port would share its callers
            ),
        )
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(_guarded(name, method))
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

    def __init__(self, address: str, secret: str):
        """Connects to "host:port" with the first call; `secret` is the server's."""
        self.address = address
        self._secret = secret
        options = (*_SENDING, ("grpc.max_receive_message_length", -1))
        self._channel = grpc.insecure_channel(address, options=options)

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
            return call(
                Message(values, blob), timeout=seconds, metadata=((_SECRET_KEY, self._secret),)
            )
        except grpc.RpcError as error:
            if error.code() in _REFUSALS:
                raise RefusedError(error.details()) from None
            raise UnreachableError(
                f"no answer from {self.address} ({error.code().name.lower()}: {error.details()})"
            ) from None

    def close(self) -> None:
        """Hangs up."""
        self._channel.close()


def _guarded(
    name: str, method: Callable[[Message], Message]
) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    def answer(data: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return _encode(method(_decode(data)))
        except ValueError as error:
            code, details = grpc.StatusCode.FAILED_PRECONDITION, str(error)
        except Exception:  # a bug; callers are not told its internals
            logging.exception("the call %r has failed", name)
            code, details = grpc.StatusCode.INTERNAL, "the server has failed, see its log"
        return context.abort(code, details)  # which raises

    return answer


def _encode(message: Message) -> bytes:
    header = json.dumps(message.values).encode()
    return len(header).to_bytes(8, "little") + header + message.blob


def _decode(data: bytes) -> Message:
    end = 8 + int.from_bytes(data[:8], "little")
    try:
        if not 8 < end <= min(len(data), MESSAGE_BYTES):
            raise ValueError
        values = json.loads(data[8:end])
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ValueError("the message cannot be read: caller and server are of different versions")
    return Message(values, data[end:])
