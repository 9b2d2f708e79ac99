"""Configuration of ACER."""

import dataclasses

from laser_tf import config_checks, errors
from laser_tf.agents import average_policy_config
from laser_tf.networks import trunk_config

KIND = "acer"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AcerConfig(average_policy_config.AveragePolicyConfig):
    """Hyper-parameters of ACER."""

    kind: str = KIND
    lambda_: float = 1.0  # factor; per agent step; traces of Q^ret and Q^opc; 0: one-step returns
    dueling_samples: int = 5  # actions; n, sampled at each step by the stochastic dueling network
    advantage_units: tuple[int, ...] = (64, 64)  # units; hidden layers of the advantage

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "kind", (KIND,))
        config_checks.check_range(
            self, "dueling_samples", 0, 1_000, "each sample is a forward pass of a network"
        )
        if not 0 <= self.lambda_ <= 1:
            raise errors.ConfigError(
                f"lambda_ must be between 0 and 1, got {self.lambda_}. Use e.g. 1."
            )
        if not all(1 <= units <= 16_384 for units in self.advantage_units):
            raise errors.ConfigError(
                f"advantage_units must be between 1 and 16384 for each layer, got "
                f"{self.advantage_units}: {trunk_config.TOO_LARGE}. Use e.g. (64, 64)."
            )
