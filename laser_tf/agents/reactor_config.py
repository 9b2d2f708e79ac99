"""Configuration of Reactor."""

import dataclasses
from typing import ClassVar

from laser_tf import config_checks, errors
from laser_tf.agents import agent_config
from laser_tf.networks import trunk_config

POLICY_GRADIENTS = ("beta_loo", "loo", "one_over_mu_loo", "tislr")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReactorConfig(agent_config.AgentConfig):
    """Hyper-parameters of Reactor; the defaults are the paper's, as far as it prints them."""

    needs_discrete_actions: ClassVar[bool] = True
    uses_sequences: ClassVar[bool] = True

    name: str = "reactor"
    torso: str = "reactor"
    core: str = "lstm"  # separate cores of policy and critic: lstm; none: feed-forward
    core_size: int = 128  # units; size of each core; table 3
    hidden_units: int = 32  # units; hidden layers of the heads, before concatenated ReLUs; table 3
    uniform_share: float = 0.01  # probability; share of the uniform policy; section 6.4
    reward_clip: str = "unit"
    distributional: bool = True  # learn distributions of returns; False: Q-values (Reactor ND)
    bins: int = 51  # number; bins of a distribution; C51's, the paper prints none
    # A fresh critic predicts the middle of v_min and v_max. Choose it near the returns of a random
    # policy.
    v_min: float = -10.0  # reward; min discounted return of a distribution; C51's
    v_max: float = 10.0  # reward; max discounted return of a distribution; C51's
    lambda_: float = 1.0  # factor; decay of Retrace's traces per agent step; section 4.1
    policy_gradient: str = "beta_loo"  # beta_loo, loo, one_over_mu_loo or tislr; section 3.1
    truncation: float = 1.0  # ratio; c of beta_loo (section 4.1) and tislr; unused by the others
    entropy_cost: float = 0.01  # weight; entropy term at the start of the run
    target_period: int = 1_000  # learner updates; period of copies to the target network

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "policy_gradient", POLICY_GRADIENTS)
        config_checks.check_range(self, "hidden_units", 1, 16_384, trunk_config.TOO_LARGE)
        config_checks.check_range(self, "bins", 2, 16_384, trunk_config.TOO_LARGE)
        # Without the uniform share a probability can reach 0, and replay stores its logarithm.
        config_checks.check_range(self, "uniform_share", 1e-6, 1, "it is a probability")
        config_checks.check_range(self, "truncation", 1)
        config_checks.check_range(self, "entropy_cost", 0)
        config_checks.check_range(self, "target_period", 1)
        self._check_fractions("lambda_")
        if not self.v_min < self.v_max:
            raise errors.ConfigError(
                f"v_min must be below v_max={self.v_max}, got {self.v_min}. Choose bounds of the "
                "discounted returns."
            )
        if self.core == "preco_lstm":
            raise errors.ConfigError(
                "core must be 'lstm' or 'none', got 'preco_lstm', which requires the last action. "
                "Use --config.agent.core=lstm."
            )
