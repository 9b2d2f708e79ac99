"""What a fleet has to know of a role before it starts."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any


class StopStage(enum.IntEnum):
    """The order in which roles stop, so that no role waits for one that has stopped."""

    ACTORS = 0  # Nothing to save.
    LEARNERS = 1
    REPLAY = 2


@dataclasses.dataclass(frozen=True)
class RoleSpec:
    """A role of a fleet and the resources of its process."""

    name: str
    role_class: str  # "module:class" in this package; only the role's process imports it.
    arguments: Mapping[str, Any]  # Of the class, after the context.
    stop_stage: StopStage
    stop_seconds: float = 180.0  # For the role to save its state; 0: ended at once.
    required: bool = False  # Whether the fleet fails if the role fails.
    group: str = ""  # The fleet fails if all roles of a group fail.
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    is_local: bool = False  # Whether the driver's machine is preferred.
    max_step_seconds: float = 0.0  # See `supervision.SupervisedRole`.
    num_threads: int = 0  # Of TensorFlow; 0: TensorFlow's default.
    cores_shared_by: int = 0  # Roles among which TensorFlow's threads are divided; 0: not divided.


def requested_resources(specs: Sequence[RoleSpec]) -> tuple[float, float]:
    """Returns the CPUs and GPUs that all roles request together."""
    return sum(spec.num_cpus for spec in specs), sum(spec.num_gpus for spec in specs)
