"""A network of the run's own, so that nobody else reaches its replay server.

Reverb listens on every interface and asks nobody for a password. A run on one machine therefore
moves into a private network namespace whose only interface is a loopback, which needs no root on
Linux; no other network, say a remote file system's, is there. Standard library only: a process
can move only while it has one thread, so this must run before the imports that start more.
"""

import ctypes
import errno
import fcntl
import os
import pathlib
import socket
import struct
from collections.abc import Sequence

FLAG = "private_network"  # of the commands that move, by default true
# Of what is elsewhere, which no private network reaches.
ELSEWHERE_FLAGS = ("config.replay.addresses", "config.cluster.address")

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
# The first needs CAP_SYS_ADMIN and leaves root its rights over other users' files; the second makes
# its own right.
_WAYS = (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET)
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_CONSEQUENCE = (
    "while the run lasts, its replay server can be reached from other hosts, without authentication"
)
_INTERFACE_REQUEST = "16sH14x"  # struct ifreq with ifr_flags


def is_wanted(arguments: Sequence[str]) -> bool:
    """What a command line says of `FLAG`, before the library that parses it can be imported.

    As absl reads a boolean flag; of what it refuses, it tells later. It knows files of flags as
    well: a command compares its answer with this one.

    Args:
      arguments: the command line, the program's name first.
    """
    wanted = True
    for argument in arguments[1:]:
        if argument == "--":
            break
        name, has_value, value = argument.removeprefix("-").removeprefix("-").partition("=")
        if not argument.startswith("-") or name not in (FLAG, f"no{FLAG}"):
            continue
        wanted = name == FLAG and (not has_value or value.lower() not in ("false", "f", "0"))
    return wanted


def names_others(arguments: Sequence[str]) -> bool:
    """Whether a command line names replay servers or a Ray elsewhere.

    Args:
      arguments: the command line, the program's name first.
    """
    given = dict.fromkeys(ELSEWHERE_FLAGS, "")
    for number, argument in enumerate(arguments):
        name, has_value, value = argument.removeprefix("-").removeprefix("-").partition("=")
        if argument.startswith("-") and name in given:
            given[name] = value if has_value else "".join(arguments[number + 1 : number + 2])
    return any(value.strip() for value in given.values())


def enter(arguments: Sequence[str] = ()) -> str | None:
    """Moves this process and its threads to come into a private network.

    Args:
      arguments: the command line; where it has `--private_network=false`, or names replay servers
        or a Ray elsewhere, the process stays.

    Returns:
      None, or why it did not move, in a line that says what that means. In that case nothing has
      changed.
    """
    if names_others(arguments):
        return None  # who can reach what is said by docs/cluster.md
    if not is_wanted(arguments):
        return (
            f"no private network, by --{FLAG}=false: {_CONSEQUENCE}; block its port, or leave the "
            "flag out"
        )
    threads = len(list(pathlib.Path("/proc/self/task").glob("*")))
    if not threads:
        return _warning(f"needs Linux and its /proc; this is {os.uname().sysname}")
    if threads > 1:
        return _warning(f"the process has {threads} threads already; enter before it starts any")
    owner = os.geteuid(), os.getegid()  # read now: a new user namespace hides them
    for flags in _WAYS:
        # Tried out in a child first: a system that forbids only a later step (some let a process
        # make a namespace but not use it) must not leave this process without any network.
        reason = _try_in_child(flags, owner)
        if reason is None:
            return _move(flags, owner)
    return _warning(reason)


def _move(flags: int, owner: tuple[int, int]) -> str | None:
    try:
        _unshare(flags)
    except OSError as error:  # the child's namespaces count against a limit for a while
        return _warning(_describe(error))
    _settle(flags, owner)
    return None


def _warning(reason: str) -> str:
    return (
        f"no private network ({reason}): {_CONSEQUENCE}; block its port or allow unprivileged user "
        "namespaces"
    )


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
        except BaseException as error:  # whatever it is, a second copy of the caller must not run
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
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _start_loopback()


def _write(path: str, text: str) -> None:
    pathlib.Path(path).write_text(text)


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack(_INTERFACE_REQUEST, b"lo", 0)
        _, flags = struct.unpack(_INTERFACE_REQUEST, fcntl.ioctl(control, _SIOCGIFFLAGS, request))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack(_INTERFACE_REQUEST, b"lo", flags | _IFF_UP))


def _use_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.settimeout(5)
        client.connect(server.getsockname())
