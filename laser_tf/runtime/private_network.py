"""A network of the run's own, so that nobody else reaches its replay server.

Reverb listens on every interface and asks nobody for a password. A run on one machine therefore
moves into a private network namespace whose only interface is a loopback, which needs no root on
Linux. Standard library only: a process can move only while it has one thread, so this must run
before the imports that start more.
"""

import ctypes
import errno
import fcntl
import os
import pathlib
import socket
import struct

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_INTERFACE_REQUEST = "16sH14x"  # struct ifreq with ifr_flags


def enter() -> str | None:
    """Moves this process and its threads to come into a private network.

    Returns:
      None, or why the system forbids it, in a line that says what that means. In that case nothing
      has changed.
    """
    threads = len(list(pathlib.Path("/proc/self/task").glob("*"))) or "an unknown number of"
    if threads != 1:
        return _warning(f"the process has {threads} threads already")
    # Tried out in a child first: a system that forbids only a later step (some let a process make
    # a namespace but not use it) must not leave this process without any network.
    reason = _try_in_child()
    if reason is None:
        _move()
        return None
    return _warning(reason)


def _warning(reason: str) -> str:
    return (
        f"no private network ({reason}): while the run lasts, its replay server can be reached "
        "from other hosts, without authentication; block its port or allow unprivileged "
        "user namespaces"
    )


def _try_in_child() -> str | None:
    """Moves a child; returns None, or the error that stopped it."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _move()
        except OSError as error:
            os.write(write_end, (f"{error.filename or ''} {error.strerror}").strip().encode())
            os._exit(1)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        reason = pipe.read()
    _, status = os.waitpid(child, 0)
    return None if status == 0 else reason or "a trial process was killed"


def _move() -> None:
    """Enters new user and network namespaces and starts the loopback; OSError where forbidden."""
    user, group = os.geteuid(), os.getegid()
    _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    # The own user keeps its number, so files stay its own.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    _start_loopback()


def _unshare(flags: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(flags) != 0:
        number = ctypes.get_errno() or errno.ENOSYS
        raise OSError(number, os.strerror(number), "unshare:")


def _write(path: str, text: str) -> None:
    pathlib.Path(path).write_text(text)


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack(_INTERFACE_REQUEST, b"lo", 0)
        _, flags = struct.unpack(_INTERFACE_REQUEST, fcntl.ioctl(control, _SIOCGIFFLAGS, request))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack(_INTERFACE_REQUEST, b"lo", flags | _IFF_UP))
