"""What a role measures, where Prometheus reads it."""

import pathlib
import re
from collections.abc import Mapping

from ray.util import metrics as ray_metrics

MEMORY = "memory_mebibytes"  # of a role's process
_PREFIX = "laser_tf_"


class Gauges:
    """A role's metrics as Ray exports them: `ray_laser_tf_<name>{role="actor_00"}`."""

    def __init__(self, role: str):
        """Without any metric."""
        self._tags = {"role": role}
        self._gauges: dict[str, ray_metrics.Gauge] = {}

    def set(self, values: Mapping[str, float]) -> None:
        """Takes the newest values, name -> value."""
        for name, value in values.items():
            gauge = self._gauges.get(name)
            if gauge is None:
                plain = _PREFIX + re.sub(r"\W", "_", name)
                gauge = self._gauges[name] = ray_metrics.Gauge(plain, tag_keys=("role",))
            gauge.set(value, tags=self._tags)


def of_process() -> dict[str, float]:
    """What every role measures."""
    status = pathlib.Path("/proc/self/status").read_text()
    kibibytes = re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)
    return {MEMORY: int(kibibytes[1]) / 1024} if kibibytes else {}
