"""Whether processes' memory grows."""

import collections
from collections.abc import Sequence

import numpy as np


def slopes(
    samples: Sequence[tuple[float, str, int, float]], warm_up_seconds: float
) -> dict[str, tuple[float, float]]:
    """How fast each role's memory grows, by regression with an intercept for each process.

    Args:
      samples: time in seconds, role, its process, MiB.
      warm_up_seconds: of a process, left out.

    Returns:
      role -> (MiB per minute, minutes observed), of roles that were observed at all.
    """
    processes: dict[tuple[str, int], list[tuple[float, float]]] = collections.defaultdict(list)
    for time, role, process, memory in samples:
        processes[role, process].append((time / 60, memory))
    sums: dict[str, np.ndarray] = collections.defaultdict(lambda: np.zeros(3))
    for (role, _), points in processes.items():
        begin = points[0][0] + warm_up_seconds / 60
        later = np.array([point for point in points if point[0] >= begin])
        if len(later) > 2:
            x, y = (later - later.mean(axis=0)).T
            sums[role] += x @ y, x @ x, np.ptp(x)
    return {role: (xy / xx, minutes) for role, (xy, xx, minutes) in sums.items() if xx}
