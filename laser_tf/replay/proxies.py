"""Keeps gRPC from asking a proxy for servers of the run itself."""

import os
from collections.abc import Iterable

NO_PROXY = "no_grpc_proxy"  # gRPC reads the lower-case name alone
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def bypass(hosts: Iterable[str] = LOOPBACK) -> None:
    """Extends `no_grpc_proxy` so that channels made from now on reach these hosts directly.

    Reverb passes no options to its channels. gRPC ignores `no_proxy` where `no_grpc_proxy` is set,
    so the entries of `no_proxy` are kept in the new value.

    Args:
      hosts: names or IP addresses, without ports.
    """
    present = os.environ.get(NO_PROXY) or os.environ.get("no_proxy", "")
    entries = [entry.strip() for entry in present.split(",") if entry.strip()]
    missing = [host for host in hosts if host not in entries]
    if missing:
        os.environ[NO_PROXY] = ",".join([*entries, *missing])
    # An empty value turns off the proxies of web pages: gRPC reads `http_proxy` otherwise.
    os.environ.setdefault("grpc_proxy", "")


def host_of(address: str) -> str:
    """Returns the host of "host:port", without the brackets of IPv6."""
    return address.rpartition(":")[0].strip("[]")
