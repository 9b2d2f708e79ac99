"""Base class of the configurations of all agents."""

import dataclasses
from typing import ClassVar, Self

from dm_env import specs

from laser_tf import config_checks, errors, observations
from laser_tf.networks import trunk_config

# The keys of ops.reward_clipping.REWARD_CLIPS.
REWARD_CLIPS = ("none", "unit", "optimistic_asymmetric", "soft_asymmetric")
# Key of the entropy cost in the run's configuration. Its value may change during a run.
ENTROPY_COST = "agent.entropy_cost"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig(trunk_config.TrunkConfig):
    """Hyper-parameters of an agent and its trunk; subclasses add their own."""

    needs_discrete_actions: ClassVar[bool] = False
    uses_sequences: ClassVar[bool] = False  # whether the agent learns from sequences of unrolls

    name: str = ""  # laser, r2d2, acer, a3c, reactor or my_module:MyAgent; sets the other keys
    discount: float = 0.99  # factor; gamma per agent step
    reward_clip: str = "none"  # clip: none, unit, optimistic_asymmetric or soft_asymmetric

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "reward_clip", REWARD_CLIPS)
        self._check_fractions("discount")

    def _check_fractions(self, *names: str) -> None:
        for name in names:
            config_checks.check_range(self, name, 0, 1, "it is a fraction")

    def _check_positive(self, *names: str) -> None:
        for name in names:
            config_checks.check_range(self, name, above=0)

    @property
    def acting_in_evaluation(self) -> str:
        """Describes how evaluation selects actions, for evaluation files."""
        return "sampled"

    def check_entries(self, scheme: str, online: int, replayed: int) -> None:  # noqa: B027
        """Raises ConfigError if the agent cannot learn from such batches of a replay scheme."""

    def check_actions(self, action: specs.BoundedArray) -> None:
        """Raises ConfigError if the agent does not support the environment's actions."""
        if self.needs_discrete_actions and not isinstance(action, specs.DiscreteArray):
            raise self._unsupported_actions(action, "one discrete action")

    def for_actions(self, action: specs.BoundedArray) -> Self:
        """Returns the configuration with values in place of `auto` that depend on the actions."""
        return self

    def _unsupported_actions(self, action: specs.BoundedArray, needed: str) -> errors.ConfigError:
        return errors.ConfigError(
            f"agent.name must be an agent for {observations.describe_action(action)}, got "
            f"{self.name!r}, which needs {needed}. Use --config.agent.name=laser."
        )
