"""Configurations of ACER and of its baselines A3C, Trust-A3C, TIS and Trust-TIS."""

import dataclasses

from dm_env import specs

from laser_tf import config_checks, errors, types
from laser_tf.agents import agent_config
from laser_tf.networks import trunk_config

STATISTICS = ("probabilities", "logits")
NONE, TRUNCATED = "none", "truncated"  # values of `A3CConfig.importance`


@dataclasses.dataclass(frozen=True, kw_only=True)
class AveragePolicyConfig(agent_config.AgentConfig):
    """Hyper-parameters that ACER and its baselines share; the defaults are ACER's."""

    reward_scale: float = 1.0  # factor; multiplies rewards after the clip
    critic_cost: float = 1.0  # weight; half the squared errors of the critic; equation 6
    entropy_cost: float = 0.001  # weight; entropy term at the start of the run; section 4
    truncation: float = 10.0  # ratio; c, max importance ratio in the policy gradient
    trust_region: bool = True  # keep the policy close to the average policy; section 3.3
    statistics: str = "probabilities"  # phi of discrete actions: probabilities or logits
    delta: float = 1.0  # nats; bound on the linearised divergence from the average policy
    average_decay: float = 0.99  # factor; alpha, decay of the average policy per learner update
    policy_std: float = 0.3  # half ranges; fixed std of a Gaussian over actions; section 6

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "statistics", STATISTICS)
        config_checks.check_range(
            self, "policy_std", 0.01, 10, "most actions would be clipped to the bounds"
        )
        self._check_fractions("average_decay")
        for name in ("critic_cost", "entropy_cost", "delta"):
            config_checks.check_range(self, name, 0)
        self._check_positive("reward_scale", "truncation")

    def check_actions(self, action: specs.BoundedArray) -> None:
        """Rejects an entropy cost for continuous actions."""
        is_continuous = not isinstance(action, specs.DiscreteArray | types.ProductSpec)
        if is_continuous and self.entropy_cost:
            raise errors.ConfigError(
                f"agent.entropy_cost must be 0 for continuous actions, got {self.entropy_cost}: "
                "policy_std fixes the entropy of their policy. Use "
                "--config=configs/acer.py:control or --config.agent.entropy_cost=0."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AcerConfig(AveragePolicyConfig):
    """Hyper-parameters of ACER."""

    name: str = "acer"
    lambda_: float = 1.0  # factor; decay of Q^ret's and Q^opc's traces per agent step; 0: one-step
    dueling_samples: int = 5  # actions; n, sampled at each step by the stochastic dueling network
    advantage_units: tuple[int, ...] = (64, 64)  # units; hidden layers of the advantage

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(
            self, "dueling_samples", 0, 1_000, "each sample is a forward pass of a network"
        )
        self._check_fractions("lambda_")
        trunk_config.check_layers(self, "advantage_units")

    def check_actions(self, action: specs.BoundedArray) -> None:
        """Rejects actions of several parts, which ACER's critics do not support."""
        super().check_actions(action)
        if isinstance(action, types.ProductSpec):
            raise self._unsupported_actions(action, "discrete or continuous actions of one part")


@dataclasses.dataclass(frozen=True, kw_only=True)
class A3CConfig(AveragePolicyConfig):
    """Hyper-parameters of the baselines (ACER, section 6 and appendix E.2)."""

    name: str = "a3c"
    trust_region: bool = False
    importance: str = NONE  # weights: none (A3C, on-policy) or truncated (TIS, products of ratios)
    truncation: float = 5.0  # ratio; max product of importance ratios; appendix E.2

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "importance", (NONE, TRUNCATED))

    def check_entries(self, scheme: str, online: int, replayed: int) -> None:
        """See `AgentConfig`."""
        if replayed and self.importance == NONE:
            raise errors.ConfigError(
                f"replay.scheme must be online for agent.importance {NONE!r}, got {scheme!r}. "
                "A3C's gradient is on-policy: use --config.replay.scheme=online, or "
                "--config.agent.importance=truncated (TIS)"
            )
