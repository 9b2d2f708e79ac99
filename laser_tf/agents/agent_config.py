"""What the configurations of all agents have in common."""

import dataclasses
from typing import ClassVar

from dm_env import specs

from laser_tf import errors
from laser_tf.networks import trunk_config

# The keys of ops.reward_clipping's.
REWARD_CLIPS = ("none", "unit", "optimistic_asymmetric", "soft_asymmetric")
# Of agents that have one, as section.key: it may change while the run goes on.
ENTROPY_COST = "agent.entropy_cost"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig(trunk_config.TrunkConfig):
    """Hyper-parameters of an agent: those of its trunk, and what subclasses add.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    needs_discrete_actions: ClassVar[bool] = False

    kind: str = ""  # which agent: laser, r2d2, acer, a3c or reactor, whose keys differ

    @property
    def acting_in_evaluation(self) -> str:
        """How actions are chosen in evaluations, in words, for their files."""
        return "sampled"

    def check_replay(
        self, *, replays: bool, learns_from_replay_alone: bool, replays_sequences: bool
    ) -> None:
        """Raises ValueError for a replay that the agent cannot learn from.

        Args:
          replays: whether anything is learned from replay.
          learns_from_replay_alone: whether batches hold no online entries.
          replays_sequences: whether replay holds overlapping sequences instead of unrolls.
        """

    def check_actions(self, action: specs.BoundedArray) -> None:
        """Raises ValueError for actions, discrete or continuous, that the agent cannot take."""
        if self.needs_discrete_actions and not isinstance(action, specs.DiscreteArray):
            raise errors.ConfigError(
                f"kind is {self.kind!r}: it needs discrete actions, the environment's have "
                f"{action.shape[0]} continuous dimensions. Use --config=configs/laser.py:control "
                "or configs/acer.py:control"
            )
