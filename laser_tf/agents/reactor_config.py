"""What can be configured of Reactor."""

import dataclasses
from typing import ClassVar

from laser_tf import config_checks, errors
from laser_tf.agents import agent_config
from laser_tf.networks import trunk_config

KIND = "reactor"
POLICY_GRADIENTS = ("beta_loo", "loo", "one_over_mu_loo", "tislr")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReactorConfig(agent_config.AgentConfig):
    """Hyper-parameters of Reactor's acting and loss; the paper's by default, where it prints them.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    needs_discrete_actions: ClassVar[bool] = True

    kind: str = KIND
    torso: str = "reactor"  # shallow, deep, strided_deep, dqn, nature, reactor, minatar, flat
    core: str = "lstm"  # policy and critic have one each: lstm; none: the feed-forward variant
    core_size: int = 128  # units; of each core; table 3
    hidden_units: int = 32  # units; of each stream, before its concatenated ReLU; table 3
    uniform_share: float = 0.01  # probability; of a random action in the policy; section 6.4
    discount: float = 0.99  # factor; gamma, per agent step; DQN's
    reward_clip: str = "unit"  # of raw rewards: none, unit, optimistic_asymmetric, soft_asymmetric
    distributional: bool = True  # learn returns' distributions; False: Q-values (Reactor ND)
    bins: int = 51  # number; of a distribution; C51's, the paper prints none; see v_min
    # A fresh critic expects the middle of v_min and v_max: keep that near random play's returns.
    v_min: float = -10.0  # reward; the least discounted return that a distribution has; C51's
    v_max: float = 10.0  # reward; the largest one; C51's; read, as bins, if distributional
    lambda_: float = 1.0  # factor; of Retrace's traces, per agent step; section 4.1
    policy_gradient: str = "beta_loo"  # beta_loo, loo, one_over_mu_loo or tislr; section 3.1
    truncation: float = 1.0  # ratio; c of beta_loo, section 4.1, and of tislr; others read none
    entropy_cost: float = 0.01  # weight; of the entropy at the run's start; A3C's
    target_period: int = 1_000  # learner updates; between copies to the target network

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "kind", (KIND,))
        config_checks.check_choice(self, "reward_clip", agent_config.REWARD_CLIPS)
        config_checks.check_choice(self, "policy_gradient", POLICY_GRADIENTS)
        config_checks.check_range(self, "hidden_units", 1, 16_384, trunk_config.TOO_LARGE)
        config_checks.check_range(self, "bins", 2, 16_384, trunk_config.TOO_LARGE)
        # Without its share an action's probability may come to be 0, whose logarithm is stored.
        config_checks.check_range(self, "uniform_share", 1e-6, 1, "it is a probability")
        config_checks.check_range(self, "truncation", 1)
        config_checks.check_range(self, "entropy_cost", 0)
        config_checks.check_range(self, "target_period", 1)
        for name in ("discount", "lambda_"):
            if not 0 <= getattr(self, name) <= 1:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)}: use a value from 0 to 1"
                )
        if not self.v_min < self.v_max:
            raise errors.ConfigError(
                f"v_min is {self.v_min} and v_max {self.v_max}: use a v_min below v_max, with the "
                "discounted returns in between"
            )
        if self.core == "preco_lstm":
            raise errors.ConfigError(
                "core is 'preco_lstm': it is told the last action, Reactor's cores are not; use "
                "'lstm' or 'none'"
            )
