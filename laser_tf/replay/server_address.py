"""Checks of the address of a replay server, before Reverb is loaded."""

import re
import socket

from laser_tf import errors

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]+)")
_CONNECT_TIMEOUT_SECONDS = 10.0


def check(address: str) -> None:
    """Raises ValueError unless an address is empty or "host:port"."""
    if not address:
        return
    match = _ADDRESS.fullmatch(address)
    if not match:
        raise errors.ConfigError(
            f"address must be the host:port of one replay server, got {address!r}. Start it with "
            "python -m launch.replay_server, which prints its port"
        )
    if not 0 < int(match[2]) < 65536:
        raise errors.ConfigError(
            f"address must have a port from 1 to 65535, got {address!r}. Use the server's --port"
        )


def check_answers(address: str) -> None:
    """Raises ValueError if no process listens at an address; accepts "", no address."""
    if not address:
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_SECONDS).close()
    except (OSError, UnicodeError) as error:  # A host name such as a..b cannot be encoded.
        reason = getattr(error, "strerror", None) or str(error)
        raise errors.ConfigError(unreachable(address, reason)) from None


def unreachable(address: str, reason: str) -> str:
    """Returns the error message for a server that does not answer."""
    return (
        f"no replay server answers at {address} ({reason}): start it (python -m "
        "launch.replay_server) or correct --config.replay.address"
    )


def check_port(port: int) -> None:
    """Raises ValueError if no process can listen on a port of this machine."""
    if not 0 <= port < 65536:
        raise errors.ConfigError(
            f"port is {port}: use a number from 1 to 65535, or 0 for a free one"
        )
    with _unbound() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))  # on all interfaces, as Reverb
        except OSError as error:
            raise errors.ConfigError(
                f"port {port} is in use ({error.strerror}): choose another, or 0 for a free one"
            ) from None


def _unbound() -> socket.socket:
    """Returns a socket like Reverb's: of both families, or of IPv4 if the kernel has no other."""
    try:
        return socket.socket(socket.AF_INET6)
    except OSError:
        return socket.socket(socket.AF_INET)
