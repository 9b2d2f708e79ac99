"""What can be configured of R2D2."""

import dataclasses
import math

from laser_tf import config_checks
from laser_tf.agents import agent_config

KIND = "r2d2"


@dataclasses.dataclass(frozen=True, kw_only=True)
class R2D2Config(agent_config.AgentConfig):
    """Hyper-parameters of R2D2's acting and loss; the paper's, table 2, by default.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    kind: str = KIND
    torso: str = "dqn"
    core: str = "lstm"  # "none": the feed-forward variant
    core_size: int = 512
    hidden_units: int = 512  # of each of the head's streams
    discount: float = 0.997  # gamma, per agent step
    n_steps: int = 5  # n, agent steps until a return bootstraps
    reward_clip: str = "none"  # one of agent_config.REWARD_CLIPS
    rescaling_epsilon: float = 1e-3  # of the value rescaling h; 0: none, the "clipped" variant
    target_period: int = 2_500  # learner updates between copies to the target network
    priority_eta: float = 0.9  # share of the largest error in a priority; the mean's is the rest
    epsilon_base: float = 0.4  # of epsilon_i = base^(1 + alpha i / (N - 1)), Horgan et al. 2018
    epsilon_alpha: float = 7.0
    evaluation_epsilon: float = 1e-3  # ours; the paper prints none
    reset_at_life_loss: bool = False  # reset the core where the discount is 0, too (figure 8)

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "kind", (KIND,))
        config_checks.check_choice(self, "reward_clip", agent_config.REWARD_CLIPS)
        for name in ("hidden_units", "n_steps", "target_period"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use 1 or more")
        for name in ("discount", "priority_eta", "epsilon_base", "evaluation_epsilon"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use a value from 0 to 1")
        for name in ("rescaling_epsilon", "epsilon_alpha"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ValueError(f"{name} is {getattr(self, name)}: use a finite value, 0 or more")

    @property
    def acting_in_evaluation(self) -> str:
        """See `AgentConfig`."""
        return f"epsilon-greedy, epsilon {self.evaluation_epsilon:g}"

    def check_replay(self, *, learns_from_replay_alone: bool, replays_sequences: bool) -> None:
        """See `AgentConfig`."""
        if not replays_sequences:
            raise ValueError(
                "replay.sequence_length is 0: r2d2 learns from sequences; use e.g. 80 agent steps"
            )
