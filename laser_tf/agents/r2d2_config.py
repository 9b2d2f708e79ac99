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

    name: str = "r2d2"
    torso: str = "dqn"
    core: str = "lstm"
    core_size: int = 512
    hidden_units: int = 512  # units; hidden layer of each stream of the head
    discount: float = 0.997
    n_steps: int = 5  # agent steps; n, length of the returns
    rescaling_epsilon: float = 1e-3  # factor; epsilon of the value rescaling h; 0: no rescaling
    target_period: int = 2_500  # learner updates; period of copies to the target network
    priority_eta: float = 0.9  # fraction; weight of the max error in a priority; the rest: mean
    epsilon_base: float = 0.4  # probability; base in epsilon_i = base^(1 + alpha i / (N - 1))
    epsilon_alpha: float = 7.0  # exponent; alpha, see epsilon_base; Ape-X
    evaluation_epsilon: float = 1e-3  # probability; exploration in evaluation; our choice
    reset_at_life_loss: bool = False  # also reset the core if the discount is 0 (figure 8)

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "hidden_units", 1, 16_384, trunk_config.TOO_LARGE)
        config_checks.check_range(
            self, "n_steps", 1, 1_000, "each step adds computation to every update"
        )
        config_checks.check_range(self, "target_period", 1)
        self._check_fractions("priority_eta", "epsilon_base", "evaluation_epsilon")
        for name in ("rescaling_epsilon", "epsilon_alpha"):
            config_checks.check_range(self, name, 0)

    @property
    def acting_in_evaluation(self) -> str:
        """Describes the exploration in evaluation."""
        return f"epsilon-greedy, epsilon {self.evaluation_epsilon:g}"
