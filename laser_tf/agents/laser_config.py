"""What can be configured of LASER."""

import dataclasses

from dm_env import specs

from laser_tf import config_checks, errors
from laser_tf.agents import agent_config

KIND = "laser"
RELEVANCES = ("none", "implied", "behaviour")
CONTINUOUS_POLICIES = ("squashed", "clipped")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LaserConfig(agent_config.AgentConfig):
    """Hyper-parameters of LASER's acting and loss.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    kind: str = KIND
    discount: float = 0.995  # factor; gamma, per agent step
    reward_clip: str = "unit"  # of raw rewards: none, unit, optimistic_asymmetric, soft_asymmetric
    baseline_cost: float = 0.5  # weight; of the value loss
    entropy_cost: float = 0.01  # weight; of the entropy term at the run's start
    entropy_on_replay: bool = False  # whether replayed rows, too, are in the entropy term
    rho_bar: float = 1.0  # ratio; V-trace: clips importance ratios, which sets the fixed point
    c_bar: float = 1.0  # ratio; V-trace: clips the traces' importance ratios
    lambda_: float = 1.0  # factor; V-trace: of the traces, per agent step
    relevance: str = "implied"  # trust region: implied or behaviour (section 4.3); none: off
    kl_threshold: float = 0.1  # nats; b: transitions with relevance below it are trusted
    popart: bool = False  # whether each task's values are learnt at unit scale
    popart_step: float = 3e-4  # fraction; of the moving averages, an update; Hessel et al. 2019
    continuous_policy: str = "squashed"  # Gaussian of continuous actions: squashed or clipped
    initial_std: float = 0.5  # half ranges; a fresh Gaussian's deviation within the bounds
    pixel_control_cost: float = 0.0  # weight; of the auxiliary loss; 0: none
    pixel_control_cell: int = 4  # pixels; height and width

    def __post_init__(self):
        super().__post_init__()
        for name, known in (
            ("kind", (KIND,)),
            ("reward_clip", agent_config.REWARD_CLIPS),
            ("relevance", RELEVANCES),
            ("continuous_policy", CONTINUOUS_POLICIES),
        ):
            config_checks.check_choice(self, name, known)
        config_checks.check_range(self, "pixel_control_cell", 1)
        config_checks.check_range(self, "initial_std", 0.01, 10, "actions would be at the bounds")
        if not 0 <= self.discount <= 1:
            raise errors.ConfigError(
                f"discount is {self.discount}: use a value from 0 to 1, e.g. 0.995"
            )
        if not 0 < self.popart_step <= 1:
            raise errors.ConfigError(
                f"popart_step is {self.popart_step}: use a value above 0, at most 1"
            )
        if not 0 <= self.lambda_ <= 1:
            raise errors.ConfigError(f"lambda_ is {self.lambda_}: use a value from 0 to 1")
        for name in ("baseline_cost", "entropy_cost", "pixel_control_cost"):
            config_checks.check_range(self, name, 0)
        for name in ("rho_bar", "c_bar", "kl_threshold"):
            if not getattr(self, name) > 0:
                raise errors.ConfigError(f"{name} is {getattr(self, name)}: use a value above 0")
        if self.rho_bar < self.c_bar:
            raise errors.ConfigError(
                f"rho_bar is {self.rho_bar}, below c_bar, {self.c_bar}: V-trace's fixed point "
                "needs rho_bar >= c_bar; raise the one or lower the other"
            )

    def check_replay(
        self, *, replays: bool, learns_from_replay_alone: bool, replays_sequences: bool
    ) -> None:
        """See `AgentConfig`."""
        if replays_sequences:
            raise errors.ConfigError(
                "replay.sequence_length is above 0: laser learns from unrolls and whole episodes; "
                "use 0"
            )
        if learns_from_replay_alone and self.entropy_cost and not self.entropy_on_replay:
            raise errors.ConfigError(
                f"entropy_cost is {self.entropy_cost}, but replay.steps_per_update above 0 leaves "
                "no online unrolls, which alone are in the entropy term: use "
                "agent.entropy_on_replay=true, or entropy_cost 0"
            )

    def check_actions(self, action: specs.BoundedArray) -> None:
        """See `AgentConfig`."""
        if not isinstance(action, specs.DiscreteArray) and self.relevance == "implied":
            raise errors.ConfigError(
                "agent.relevance must be 'behaviour' for continuous actions, got 'implied', which "
                "has no closed form for them. Use --config=configs/laser.py:control, or "
                "--config.agent.relevance=behaviour"
            )
