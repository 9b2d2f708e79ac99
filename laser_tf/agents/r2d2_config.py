"""Configuration of R2D2."""

import dataclasses
from typing import ClassVar

from laser_tf import config_checks
from laser_tf.agents import agent_config
from laser_tf.networks import trunk_config


@dataclasses.dataclass(frozen=True, kw_only=True)
class R2D2Config(agent_config.AgentConfig):
    """Hyper-parameters of R2D2; the defaults are those of the paper's table 2."""

    needs_discrete_actions: ClassVar[bool] = True
    uses_sequences: ClassVar[bool] = True

    kind: str = "r2d2"
    torso: str = "dqn"  # shallow, deep, strided_deep, dqn, nature, reactor, minatar, flat
    core: str = "lstm"  # recurrent core: lstm or preco_lstm; none: feed-forward
    core_size: int = 512  # units; size of the core
    hidden_units: int = 512  # units; hidden layer of each stream of the head
    discount: float = 0.997  # factor; gamma, per agent step
    n_steps: int = 5  # agent steps; n, length of the returns
    reward_clip: str = "none"  # of raw rewards: none, unit, optimistic_asymmetric, soft_asymmetric
    rescaling_epsilon: float = 1e-3  # factor; epsilon of the value rescaling h; 0: no rescaling
    target_period: int = 2_500  # learner updates; period of copies to the target network
    priority_eta: float = 0.9  # fraction; weight of the max error in a priority; the rest: mean
    epsilon_base: float = 0.4  # probability; base in epsilon_i = base^(1 + alpha i / (N - 1))
    epsilon_alpha: float = 7.0  # exponent; alpha, see epsilon_base; Ape-X
    evaluation_epsilon: float = 1e-3  # probability; exploration in evaluation; our choice
    reset_at_life_loss: bool = False  # also reset the core if the discount is 0 (figure 8)

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "reward_clip", agent_config.REWARD_CLIPS)
        config_checks.check_range(self, "hidden_units", 1, 16_384, trunk_config.TOO_LARGE)
        config_checks.check_range(
            self, "n_steps", 1, 1_000, "each step adds computation to every update"
        )
        config_checks.check_range(self, "target_period", 1)
        self._check_fractions("discount", "priority_eta", "epsilon_base", "evaluation_epsilon")
        for name in ("rescaling_epsilon", "epsilon_alpha"):
            config_checks.check_range(self, name, 0)

    @property
    def acting_in_evaluation(self) -> str:
        """Returns the exploration rate in evaluation, see `AgentConfig`."""
        return f"epsilon-greedy, epsilon {self.evaluation_epsilon:g}"
