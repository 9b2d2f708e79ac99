"""What can be configured of the learner."""

import dataclasses
import math

from laser_tf import config_checks

JIT_COMPILE = ("auto", "on", "off")
COMPUTE_DTYPES = ("auto", "float32", "bfloat16")
SCHEDULES = ("linear", "constant")
OPTIMIZERS = RMSPROP, ADAM = ("rmsprop", "adam")
LEARNING_RATE, ENTROPY_COST, RMSPROP_EPSILON = TUNABLE = (
    "learner.learning_rate",
    "agent.entropy_cost",
    "learner.rmsprop_epsilon",
)


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """How the weights are updated.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    learning_rate: float = 6e-4
    learning_rate_schedule: str = "linear"  # to zero at the run's last frame, or "constant"
    optimizer: str = RMSPROP  # or "adam"; the other one's keys are not read
    rmsprop_decay: float = 0.99
    rmsprop_momentum: float = 0.0
    rmsprop_epsilon: float = 0.01
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_epsilon: float = 1e-3
    gradient_clip: float = 0.0  # global norm; 0 switches it off
    non_finite_limit: int = 10  # skipped updates in a row that end the run
    jit_compile: str = "auto"
    compute_dtype: str = "auto"

    def __post_init__(self):
        for name, choices in (
            ("learning_rate_schedule", SCHEDULES),
            ("optimizer", OPTIMIZERS),
            ("jit_compile", JIT_COMPILE),
            ("compute_dtype", COMPUTE_DTYPES),
        ):
            config_checks.check_choice(self, name, choices)
        for name in ("learning_rate", "rmsprop_epsilon", "adam_epsilon"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}: use a finite value above 0")
        for name in ("rmsprop_decay", "rmsprop_momentum", "adam_beta1", "adam_beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use a value from 0 to below 1")
        if not self.gradient_clip >= 0:
            raise ValueError(f"gradient_clip is {self.gradient_clip}: use 0 (off) or more")
        if self.non_finite_limit < 1:
            raise ValueError(f"non_finite_limit is {self.non_finite_limit}: use 1 or more")

    @property
    def tunable(self) -> tuple[str, ...]:
        """`TUNABLE` without what the optimiser does not read."""
        unread = () if self.optimizer == RMSPROP else (RMSPROP_EPSILON,)
        return tuple(name for name in TUNABLE if name not in unread)
