"""How much memory this machine, or the container around this process, has left."""

import math
import pathlib

_LEAST_SHARE = 0.05  # of it all, that is left to the rest of the run and to other processes
_MEMINFO = pathlib.Path("/proc/meminfo")
_CGROUP = pathlib.Path("/sys/fs/cgroup")


def has_room() -> bool:
    """Whether there is memory for more than what the process needs anyway."""
    return all(left >= _LEAST_SHARE * whole for left, whole in (_machine(), _container()))


def free_bytes() -> tuple[float, float]:
    """Returns the bytes that replay may take, and all bytes of the machine or the container."""
    left, whole = min(_machine(), _container())
    return max(0.0, left - _LEAST_SHARE * whole), whole


def _machine() -> tuple[float, float]:
    """Bytes that are available, and all of them."""
    kibibytes = dict(line.split(":") for line in _MEMINFO.read_text().splitlines())
    left, whole = (int(kibibytes[name].split()[0]) for name in ("MemAvailable", "MemTotal"))
    return 1024 * left, 1024 * whole


def _container() -> tuple[float, float]:
    """The same of a limit by version 2 of Linux's control groups; infinity without a limit."""
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        cached = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # "max" is no number
        return math.inf, math.inf
    return limit - used + int(cached.get("file", 0)), limit
