"""What can be configured of ACER."""

import dataclasses

from laser_tf import config_checks, errors
from laser_tf.agents import average_policy_config
from laser_tf.networks import trunk_config

KIND = "acer"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AcerConfig(average_policy_config.AveragePolicyConfig):
    """Hyper-parameters of ACER's acting and loss.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    kind: str = KIND
    lambda_: float = 1.0  # factor; of Q^ret's and Q^opc's traces, per agent step; 0: one step
    dueling_samples: int = 5  # actions; n, drawn for each step by a stochastic dueling network
    advantage_units: tuple[int, ...] = (64, 64)  # units; of its advantage's hidden layers

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "kind", (KIND,))
        config_checks.check_range(self, "dueling_samples", 0, 1_000, "each is a pass of a network")
        if not 0 <= self.lambda_ <= 1:
            raise errors.ConfigError(f"lambda_ is {self.lambda_}: use a value from 0 to 1")
        if not all(1 <= units <= 16_384 for units in self.advantage_units):
            raise errors.ConfigError(
                f"advantage_units is {self.advantage_units}: use layers of 1 to 16384 units; "
                + trunk_config.TOO_LARGE
            )
