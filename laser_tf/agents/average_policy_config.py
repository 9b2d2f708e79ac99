"""What can be configured of agents whose policy is held near an average of its past."""

import dataclasses

from dm_env import specs

from laser_tf import config_checks, errors
from laser_tf.agents import agent_config

STATISTICS = ("probabilities", "logits")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AveragePolicyConfig(agent_config.AgentConfig):
    """Hyper-parameters that ACER and its baselines share; ACER's by default.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    discount: float = 0.99  # factor; gamma, per agent step; section 4
    reward_clip: str = "none"  # of raw rewards: none, unit, optimistic_asymmetric, soft_asymmetric
    reward_scale: float = 1.0  # factor; on rewards, after the clip
    critic_cost: float = 1.0  # weight; of the critic's squared errors, halved; equation 6
    entropy_cost: float = 0.001  # weight; of the entropy at the run's start; section 4
    truncation: float = 10.0  # ratio; c, where importance ratios of the policy gradient are cut
    trust_region: bool = True  # whether updates are held near the average policy, section 3.3
    statistics: str = "probabilities"  # phi, of discrete actions: probabilities or logits
    delta: float = 1.0  # nats; of the linearised divergence from the average policy, at each step
    average_decay: float = 0.99  # factor; alpha, an update, of the average policy's weights
    policy_std: float = 0.3  # half ranges; fixed, of a Gaussian of continuous actions; section 6

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "reward_clip", agent_config.REWARD_CLIPS)
        config_checks.check_choice(self, "statistics", STATISTICS)
        config_checks.check_range(self, "policy_std", 0.01, 10, "actions would be at the bounds")
        for name in ("discount", "average_decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)}: use a value from 0 to 1"
                )
        for name in ("critic_cost", "entropy_cost", "delta"):
            config_checks.check_range(self, name, 0)
        for name in ("reward_scale", "truncation"):
            if not getattr(self, name) > 0:
                raise errors.ConfigError(f"{name} is {getattr(self, name)}: use a value above 0")

    def check_replay(
        self, *, replays: bool, learns_from_replay_alone: bool, replays_sequences: bool
    ) -> None:
        """See `AgentConfig`."""
        if replays_sequences:
            raise errors.ConfigError(
                f"replay.sequence_length is above 0: {self.kind} learns from unrolls and whole "
                "episodes; use 0"
            )

    def check_actions(self, action: specs.BoundedArray) -> None:
        """See `AgentConfig`."""
        if not isinstance(action, specs.DiscreteArray) and self.entropy_cost:
            raise errors.ConfigError(
                f"agent.entropy_cost must be 0 for continuous actions, got {self.entropy_cost}: "
                "their policy has a fixed deviation, policy_std, so its entropy is fixed. Use "
                "--config=configs/acer.py:control, or --config.agent.entropy_cost=0"
            )
