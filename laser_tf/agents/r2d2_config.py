"""What can be configured of R2D2."""

import dataclasses
from typing import ClassVar

from laser_tf import config_checks, errors
from laser_tf.agents import agent_config
from laser_tf.networks import trunk_config

KIND = "r2d2"


@dataclasses.dataclass(frozen=True, kw_only=True)
class R2D2Config(agent_config.AgentConfig):
    """Hyper-parameters of R2D2's acting and loss; the paper's, table 2, by default.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    needs_discrete_actions: ClassVar[bool] = True

    kind: str = KIND
    torso: str = "dqn"  # shallow, deep, strided_deep, dqn, nature, reactor, minatar, flat
    core: str = "lstm"  # remembers: lstm or preco_lstm; none: the feed-forward variant
    core_size: int = 512  # units; of the core
    hidden_units: int = 512  # units; of each of the head's streams
    discount: float = 0.997  # factor; gamma, per agent step
    n_steps: int = 5  # agent steps; n, until a return bootstraps
    reward_clip: str = "none"  # of raw rewards: none, unit, optimistic_asymmetric, soft_asymmetric
    rescaling_epsilon: float = 1e-3  # factor; of the value rescaling h; 0: none, rewards clipped
    target_period: int = 2_500  # learner updates; between copies to the target network
    priority_eta: float = 0.9  # fraction; of the largest error in a priority; the rest: the mean
    epsilon_base: float = 0.4  # probability; of epsilon_i = base^(1 + alpha i / (N - 1)), Ape-X
    epsilon_alpha: float = 7.0  # exponent; alpha, see epsilon_base
    evaluation_epsilon: float = 1e-3  # probability; of a random action; ours, the paper prints none
    reset_at_life_loss: bool = False  # reset the core where the discount is 0, too (figure 8)

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "kind", (KIND,))
        config_checks.check_choice(self, "reward_clip", agent_config.REWARD_CLIPS)
        config_checks.check_range(self, "hidden_units", 1, 16_384, trunk_config.TOO_LARGE)
        config_checks.check_range(self, "n_steps", 1, 1_000, "an update computes them one by one")
        config_checks.check_range(self, "target_period", 1)
        for name in ("discount", "priority_eta", "epsilon_base", "evaluation_epsilon"):
            if not 0 <= getattr(self, name) <= 1:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)}: use a value from 0 to 1"
                )
        for name in ("rescaling_epsilon", "epsilon_alpha"):
            config_checks.check_range(self, name, 0)

    @property
    def acting_in_evaluation(self) -> str:
        """See `AgentConfig`."""
        return f"epsilon-greedy, epsilon {self.evaluation_epsilon:g}"

    def check_replay(
        self, *, replays: bool, learns_from_replay_alone: bool, replays_sequences: bool
    ) -> None:
        """See `AgentConfig`."""
        if not replays_sequences:
            raise errors.ConfigError(
                "replay.sequence_length is 0: r2d2 learns from sequences; use e.g. 80 agent steps"
            )
