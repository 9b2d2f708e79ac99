"""Where replay servers listen: `host:port,host:port`, read and tried before Reverb is loaded."""

import re
import socket

from laser_tf import errors

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]+)")
_CONNECT_SECONDS = 10.0


def parse(text: str) -> tuple[str, ...]:
    """The addresses of a list with commas; none of an empty text.

    Raises:
      ValueError: for one that is no `host:port`, or is there twice.
    """
    addresses = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    for address in addresses:
        match = _ADDRESS.fullmatch(address)
        if not match:
            raise errors.ConfigError(
                f"addresses has {address!r}: use host:port, several with commas between them"
            )
        if not 0 < int(match[2]) < 65536:
            raise errors.ConfigError(
                f"addresses has port {match[2]} in {address!r}: use 1 to 65535"
            )
        if addresses.count(address) > 1:
            raise errors.ConfigError(
                f"addresses has {address} twice: name every replay server once"
            )
    return addresses


def check_answers(addresses: tuple[str, ...]) -> None:
    """Raises ValueError, with the address, if nobody listens at one of them."""
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, UnicodeError) as error:  # A host name such as a..b cannot be encoded.
            reason = getattr(error, "strerror", None) or str(error)
            raise errors.ConfigError(unreachable(address, reason)) from None


def unreachable(address: str, reason: str) -> str:
    """The line that says so."""
    return (
        f"no replay server answers at {address} ({reason}): start it (python -m "
        "launch.replay_server) or correct --config.replay.addresses"
    )


def check_port(port: int) -> None:
    """Raises ValueError if nobody can listen on a port of this machine."""
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
    """A socket as Reverb's: of both families, or of IPv4 where the kernel has no other."""
    try:
        return socket.socket(socket.AF_INET6)
    except OSError:
        return socket.socket(socket.AF_INET)
