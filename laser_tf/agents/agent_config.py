"""Base class of the configurations of all agents."""

import dataclasses
from typing import ClassVar

from dm_env import specs

from laser_tf import errors
from laser_tf.networks import trunk_config

# The keys of ops.reward_clipping.REWARD_CLIPS.
REWARD_CLIPS = ("none", "unit", "optimistic_asymmetric", "soft_asymmetric")
# Key of the entropy cost in the run's configuration. Its value may change during a run.
ENTROPY_COST = "agent.entropy_cost"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig(trunk_config.TrunkConfig):
    """Hyper-parameters of an agent and its trunk; subclasses add their own.

    Raises:
      ValueError: If a value is out of range.
    """

    needs_discrete_actions: ClassVar[bool] = False
    supported_schemes: ClassVar[tuple[str, ...]] = ()  # names of replay schemes

    kind: str = ""  # the agent, which sets the other keys: laser, r2d2, acer, a3c or reactor

    @property
    def acting_in_evaluation(self) -> str:
        """Returns a description of action selection in evaluation, for evaluation files."""
        return "sampled"

    def check_scheme(self, scheme: str) -> None:
        """Raises ValueError for a replay scheme that the agent does not support."""
        if scheme not in self.supported_schemes:
            supported = " or ".join(self.supported_schemes)
            raise errors.ConfigError(
                f"replay.scheme must be {supported} for agent.kind {self.kind!r}, got {scheme!r}. "
                f"Use --config.replay.scheme={self.supported_schemes[0]}"
            )

    def check_actions(self, action: specs.BoundedArray) -> None:
        """Raises ValueError if the agent does not support the environment's actions."""
        if self.needs_discrete_actions and not isinstance(action, specs.DiscreteArray):
            raise errors.ConfigError(
                f"kind must be an agent for {action.shape[0]} continuous action dimensions, got "
                f"{self.kind!r}, which needs discrete actions. Use "
                "--config=configs/laser.py:control or --config=configs/acer.py:control."
            )
