"""Configuration of agents with a trust region around an average policy."""

import dataclasses
from typing import ClassVar

from dm_env import specs

from laser_tf import config_checks, errors
from laser_tf.agents import agent_config

STATISTICS = ("probabilities", "logits")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AveragePolicyConfig(agent_config.AgentConfig):
    """Hyper-parameters that ACER and its baselines share; the defaults are ACER's."""

    supported_schemes: ClassVar[tuple[str, ...]] = (
        "alternating",
        "replay_only",
        "mixed",
        "episodes",
        "online",
    )

    discount: float = 0.99  # factor; gamma, per agent step; section 4
    reward_clip: str = "none"  # of raw rewards: none, unit, optimistic_asymmetric, soft_asymmetric
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
        config_checks.check_choice(self, "reward_clip", agent_config.REWARD_CLIPS)
        config_checks.check_choice(self, "statistics", STATISTICS)
        config_checks.check_range(
            self, "policy_std", 0.01, 10, "most actions would be clipped to the bounds"
        )
        for name in ("discount", "average_decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise errors.ConfigError(
                    f"{name} must be between 0 and 1, got {getattr(self, name)}. Use e.g. 0.99."
                )
        for name in ("critic_cost", "entropy_cost", "delta"):
            config_checks.check_range(self, name, 0)
        for name in ("reward_scale", "truncation"):
            if not getattr(self, name) > 0:
                raise errors.ConfigError(
                    f"{name} must be above 0, got {getattr(self, name)}. Use a larger value."
                )

    def check_actions(self, action: specs.BoundedArray) -> None:
        """Rejects an entropy cost for continuous actions, see `AgentConfig`."""
        if not isinstance(action, specs.DiscreteArray) and self.entropy_cost:
            raise errors.ConfigError(
                f"agent.entropy_cost must be 0 for continuous actions, got {self.entropy_cost}: "
                "policy_std fixes the entropy of their policy. Use "
                "--config=configs/acer.py:control or --config.agent.entropy_cost=0."
            )
