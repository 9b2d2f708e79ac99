"""How the C library's allocator treats memory that is freed.

Standard library only: it is set before anything else is loaded.
"""

import ctypes
import os

# Parameters of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_NEVER = 2**31 - 1  # bytes; the most that mallopt takes


def keep_freed_memory() -> None:
    """Has glibc keep what is freed for the next use; does nothing on another C library.

    By default blocks of some megabytes are handed to the kernel when they are freed. An update
    frees and takes dozens of them, and each of their pages is then given out and cleared anew:
    10,000 page faults an update of LASER on Atari. One arena, since others have heaps of limited
    size, which are given back, too. What the user sets by variables, MALLOC_ARENA_MAX and the like,
    is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or any(name.startswith("MALLOC_") for name in os.environ):
        return
    for parameter, value in ((_ARENA_MAX, 1), (_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER)):
        mallopt(parameter, value)
