"""Checks of the address of a replay server, before Reverb is loaded."""

import re
import socket

from laser_tf import errors

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]+)")
_CONNECT_TIMEOUT_SECONDS = 10.0


def check(address: str) -> None:
    """Raises ConfigError unless an address is empty or "host:port"."""
    match = _ADDRESS.fullmatch(address)
    if address and not (match and 0 < int(match[2]) < 65536):
        raise errors.ConfigError(
            "address must be the host:port of one replay server, with a port from 1 to 65535, got "
            f"{address!r}. Start it with python -m launch.replay_server, which prints its port."
        )


def check_answers(address: str) -> None:
    """Raises ConfigError if no process listens at an address; accepts "", no address."""
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
    """Raises ConfigError if no process can listen on a port of this machine; 0 is a free port."""
    is_dual = socket.has_dualstack_ipv6()  # Reverb listens on IPv6, too, if the kernel supports it.
    family = socket.AF_INET6 if is_dual else socket.AF_INET
    try:
        socket.create_server(("", port), family=family, dualstack_ipv6=is_dual).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise errors.ConfigError(
            f"port must be a free port from 1 to 65535, or 0 for any, got {port} ({reason})"
        ) from None
