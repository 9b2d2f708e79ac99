"""What can be configured of LASER."""

import dataclasses
import math

from laser_tf import config_checks
from laser_tf.agents import choices

KIND = "laser"
RELEVANCES = ("none", "implied", "behaviour")


@dataclasses.dataclass(frozen=True)
class LaserConfig:
    """Hyper-parameters of LASER's acting and loss.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    kind: str = KIND
    torso: str = "shallow"  # one of choices.TORSOS
    channel_multiplier: int = 1
    center_observation: bool = False  # subtract each observation's mean, see networks.torsos
    core: str = "none"  # one of choices.CORES; "none": feed-forward
    core_size: int = 256  # units of the core
    core_memory_span: int = 0  # steps that a fresh core remembers, see networks.lstm_cell; 0: few
    discount: float = 0.995  # gamma, per agent step
    reward_clip: str = "unit"  # one of choices.REWARD_CLIPS
    baseline_cost: float = 0.5
    entropy_cost: float = 0.01  # initial value; a runtime variable of the agent
    entropy_on_replay: bool = False  # whether replayed rows, too, are in the entropy term
    rho_bar: float = 1.0
    c_bar: float = 1.0
    lambda_: float = 1.0
    relevance: str = "implied"  # trust region; "none" switches it off
    kl_threshold: float = 0.3  # b: transitions with relevance below it are trusted
    popart: bool = False  # whether each task's values are learnt at unit scale
    popart_step: float = 3e-4  # of the moving averages, an update; Hessel et al. 2019
    pixel_control_cost: float = 0.0  # of the auxiliary loss; 0: none
    pixel_control_cell: int = 4  # pixels, height and width

    def __post_init__(self):
        for name, known in (
            ("kind", (KIND,)),
            ("torso", choices.TORSOS),
            ("core", choices.CORES),
            ("reward_clip", choices.REWARD_CLIPS),
            ("relevance", RELEVANCES),
        ):
            config_checks.check_choice(self, name, known)
        for name in ("channel_multiplier", "core_size", "pixel_control_cell"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use 1 or more")
        if self.core_memory_span != 0 and self.core_memory_span < 3:
            raise ValueError(
                f"core_memory_span is {self.core_memory_span}: use 3 steps or more, or 0"
            )
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount is {self.discount}: use a value from 0 to 1, e.g. 0.995")
        if not 0 < self.popart_step <= 1:
            raise ValueError(f"popart_step is {self.popart_step}: use a value above 0, at most 1")
        if not 0 <= self.lambda_ <= 1:
            raise ValueError(f"lambda_ is {self.lambda_}: use a value from 0 to 1")
        for name in ("baseline_cost", "entropy_cost", "pixel_control_cost"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ValueError(f"{name} is {getattr(self, name)}: use a finite value, 0 or more")
        for name in ("rho_bar", "c_bar", "kl_threshold"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: use a value above 0")
        if self.rho_bar < self.c_bar:
            raise ValueError(
                f"rho_bar is {self.rho_bar}, below c_bar, {self.c_bar}: V-trace's fixed point "
                "needs rho_bar >= c_bar; raise the one or lower the other"
            )
