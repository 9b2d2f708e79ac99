"""Moves a run into a private network, so that no other process reaches its replay server.

Reverb listens on every interface without authentication. A run on one machine therefore moves into
a network namespace whose only interface is a loopback, which needs no root on Linux. A process can
move only while it has one thread, before the imports that start more.
"""

import ctypes
import errno
import fcntl
import os
import pathlib
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence

from laser_tf.host import process_launcher

# Flags that name servers on other machines, which a private network does not reach.
_ELSEWHERE_FLAGS = ("config.replay.address", "config.cluster.address")

# Callbacks that need no network; others may send metrics or messages to a server.
_LOCAL_CALLBACKS = ("KeepBest", "StopAfter", "StopAtReturn")

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
# The first way needs CAP_SYS_ADMIN and keeps root's rights over files of other users. The second
# way needs no capability.
_WAYS = (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET)
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_CONSEQUENCE = (
    "while the run lasts, its replay server can be reached from other hosts, without "
    "authentication; block its port"
)
_INTERFACE_REQUEST = "16sH14x"  # struct ifreq with ifr_flags


def names_other_machines(arguments: Sequence[str]) -> bool:
    """Returns whether a command line names replay servers or a Ray head on other machines."""
    given = dict(_find(_ELSEWHERE_FLAGS, arguments))  # The last value of each flag.
    for _, override in _find(("override",), arguments):
        key, _, value = override.partition("=")
        given[f"config.{key}"] = value
    return any(given.get(name, "").strip() for name in _ELSEWHERE_FLAGS)


def has_flag(name: str, arguments: Sequence[str]) -> bool:
    """Returns whether a command line has the flag `name` with a value."""
    return any(_find((name,), arguments))


def find_network_callback(arguments: Sequence[str]) -> str | None:
    """Returns the first callback of a command line that may need the host's network, or None."""
    local = tuple(f"laser_tf.callbacks:{name}" for name in _LOCAL_CALLBACKS)
    given = (value for _, value in _find(("callbacks",), arguments))
    return next((value for value in given if value.partition("(")[0] not in local), None)


def _find(names: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the flags of these names in a command line, with their values."""
    for number, argument in enumerate(arguments):
        name, has_value, value = argument.removeprefix("-").removeprefix("-").partition("=")
        if argument.startswith("-") and name in names:
            yield name, value if has_value else "".join(arguments[number + 1 : number + 2])


def enter(arguments: Sequence[str] = ()) -> str | None:
    """Moves this process into a private network, unless its command line needs the host's network.

    Environment workers stay in the present network, see `process_launcher`.

    Returns:
      None, or one line with the reason why nothing has changed, and the consequence.
    """
    if names_other_machines(arguments):
        return None  # docs/distributed.md describes who can reach these servers.
    if callback := find_network_callback(arguments):
        return f"no private network (--callbacks={callback} may need the host's): {_CONSEQUENCE}"
    threads = len(list(pathlib.Path("/proc/self/task").glob("*")))
    if threads != 1:  # 0 without Linux's /proc
        return _warning(f"the process must have one thread on Linux, got {threads}")
    owner = os.geteuid(), os.getegid()  # Read now, because a new user namespace hides them.
    for flags in _WAYS:
        # Tried in a child first: a system that forbids only a later step (some let a process
        # create a namespace but not use it) must not leave this process without any network.
        reason = _try_in_child(flags, owner)
        if reason is None:
            return _move(flags, owner)
    return _warning(reason)


def _move(flags: int, owner: tuple[int, int]) -> str | None:
    try:
        os.environ[process_launcher.SOCKET_VARIABLE] = process_launcher.start()
        _unshare(flags)
    except (OSError, subprocess.SubprocessError) as error:
        # The namespaces of the child count against a limit for a while.
        return _warning(_describe(error))
    _settle(flags, owner)
    return None


def _warning(reason: str) -> str:
    return f"no private network ({reason}): {_CONSEQUENCE} or allow unprivileged user namespaces"


def _describe(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or ''} {error.strerror}".strip()
    return repr(error)


def _try_in_child(flags: int, owner: tuple[int, int]) -> str | None:
    """Moves a child; returns None, or the error that stopped it."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _unshare(flags)
            _settle(flags, owner)
            _use_loopback()
            os._exit(0)
        except BaseException as error:  # A second copy of the caller must not run.
            os.write(write_end, _describe(error).encode())
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        reason = pipe.read()
    _, status = os.waitpid(child, 0)
    return None if status == 0 else reason or "a trial process was killed"


def _unshare(flags: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(flags) != 0:
        number = ctypes.get_errno() or errno.ENOSYS
        raise OSError(number, os.strerror(number), "unshare:")


def _settle(flags: int, owner: tuple[int, int]) -> None:
    """Keeps the owner's identity in new namespaces and starts their loopback."""
    if flags & _CLONE_NEWUSER:
        user, group = owner
        # The own user keeps its number, so files stay its own.
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack(_INTERFACE_REQUEST, b"lo", 0)
        _, flags = struct.unpack(_INTERFACE_REQUEST, fcntl.ioctl(control, _SIOCGIFFLAGS, request))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack(_INTERFACE_REQUEST, b"lo", flags | _IFF_UP))


def _use_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.settimeout(5)
        client.connect(server.getsockname())
