"""Configuration of the learner."""

import dataclasses

from laser_tf import config_checks
from laser_tf.agents import agent_config

JIT_COMPILE = ("auto", "on", "off")
COMPUTE_DTYPES = ("auto", "float32", "bfloat16")
SCHEDULES = ("linear", "constant")
OPTIMIZERS = RMSPROP, ADAM = ("rmsprop", "adam")
LEARNING_RATE, RMSPROP_EPSILON = "learner.learning_rate", "learner.rmsprop_epsilon"
TUNABLE = (LEARNING_RATE, agent_config.ENTROPY_COST, RMSPROP_EPSILON)


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """Batches, optimiser and numerics of the learner."""

    learning_rate: float = 6e-4  # step size; at the start of the run
    learning_rate_schedule: str = "linear"  # linear (to zero at the last frame) or constant
    optimizer: str = RMSPROP  # rmsprop or adam; keys of the other optimiser are ignored
    rmsprop_decay: float = 0.99  # factor; decay of the mean square per update
    rmsprop_momentum: float = 0.0  # factor; decay of earlier steps per update
    rmsprop_epsilon: float = 0.01  # squared gradient; added inside the square root
    adam_beta1: float = 0.9  # factor; decay of the mean gradient per update
    adam_beta2: float = 0.999  # factor; decay of the mean square per update
    adam_epsilon: float = 1e-3  # gradient; added outside the square root
    gradient_clip: float = 0.0  # gradient; max global norm; 0: no clipping
    non_finite_limit: int = 10  # learner updates; skipped in a row until the run ends
    jit_compile: str = "auto"  # whether XLA compiles the update: auto, on or off
    compute_dtype: str = "auto"  # dtype of the torso: auto, float32 or bfloat16
    num_devices: int = 1  # devices; GPUs, TPU cores or else CPUs that share each batch
    spare_cores: int = 0  # cores; not used by TensorFlow, free for actors of this process

    def __post_init__(self):
        config_checks.check_types(self)
        for name, choices in (
            ("learning_rate_schedule", SCHEDULES),
            ("optimizer", OPTIMIZERS),
            ("jit_compile", JIT_COMPILE),
            ("compute_dtype", COMPUTE_DTYPES),
        ):
            config_checks.check_choice(self, name, choices)
        for name in ("learning_rate", "rmsprop_epsilon", "adam_epsilon"):
            config_checks.check_range(self, name, above=0)
        for name in ("rmsprop_decay", "rmsprop_momentum", "adam_beta1", "adam_beta2"):
            config_checks.check_range(self, name, 0, below=1)
        config_checks.check_range(self, "gradient_clip", 0)
        config_checks.check_range(self, "spare_cores", 0)
        for name in ("non_finite_limit", "num_devices"):
            config_checks.check_range(self, name, 1)

    @property
    def tunable(self) -> tuple[str, ...]:
        """`TUNABLE` without keys that the optimiser does not read."""
        unread = () if self.optimizer == RMSPROP else (RMSPROP_EPSILON,)
        return tuple(name for name in TUNABLE if name not in unread)
