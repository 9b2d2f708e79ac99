"""Configuration of LASER."""

import dataclasses
from typing import Self

from dm_env import specs

from laser_tf import config_checks, errors, observations
from laser_tf.agents import agent_config

TRUST_REGIONS = ("auto", "none", "implied", "behaviour")
CONTINUOUS_POLICIES = ("squashed", "clipped")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LaserConfig(agent_config.AgentConfig):
    """Hyper-parameters of LASER."""

    name: str = "laser"
    discount: float = 0.995
    reward_clip: str = "unit"
    baseline_cost: float = 0.5  # weight; value loss
    entropy_cost: float = 0.01  # weight; entropy term at the start of the run
    entropy_on_replay: bool = False  # include replayed batch entries in the entropy term
    rho_bar: float = 1.0  # ratio; V-trace: max importance ratio, which sets the fixed point
    c_bar: float = 1.0  # ratio; V-trace: max importance ratio of the traces
    lambda_: float = 1.0  # factor; V-trace: decay of the traces per agent step
    trust_region: str = "auto"  # KL to the implied or behaviour policy; auto: by action; none: off
    kl_threshold: float = 0.1  # nats; b: transitions with KL below this are trusted
    popart: bool = False  # learn the values of each task at unit scale
    popart_step: float = 3e-4  # fraction; step size of the moments per update; Hessel et al. 2019
    popart_rises_at_once: bool = False  # PopArt's scale follows larger targets without delay
    continuous_policy: str = "squashed"  # Gaussian of continuous actions: squashed or clipped
    initial_std: float = 0.5  # half ranges; initial standard deviation of the Gaussian
    pixel_control_cost: float = 0.0  # weight; auxiliary PixelControl loss; 0: off
    pixel_control_cell: int = 4  # pixels; height and width of a PixelControl cell

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "trust_region", TRUST_REGIONS)
        config_checks.check_choice(self, "continuous_policy", CONTINUOUS_POLICIES)
        config_checks.check_range(self, "pixel_control_cell", 1)
        # Bounds of `distributions.gaussian`, whose import takes seconds.
        config_checks.check_range(
            self, "initial_std", above=0.3, below=2, reason="these are the bounds of the deviation"
        )
        self._check_fractions("lambda_", "popart_step")
        for name in ("baseline_cost", "entropy_cost", "pixel_control_cost"):
            config_checks.check_range(self, name, 0)
        self._check_positive("rho_bar", "c_bar", "kl_threshold", "popart_step")
        if self.rho_bar < self.c_bar:
            raise errors.ConfigError(
                f"rho_bar must be at least c_bar={self.c_bar} for V-trace's fixed point, got "
                f"{self.rho_bar}. Increase rho_bar or decrease c_bar."
            )

    def check_entries(self, scheme: str, online: int, replayed: int) -> None:
        """See `AgentConfig`."""
        if not online and self.entropy_cost and not self.entropy_on_replay:
            raise errors.ConfigError(
                f"agent.entropy_on_replay must be true for replay.scheme {scheme!r}, got "
                f"{self.entropy_on_replay}. The scheme has no online unrolls for the entropy term. "
                "Use --config.agent.entropy_on_replay=true or --config.agent.entropy_cost=0"
            )

    def check_actions(self, action: specs.BoundedArray) -> None:
        """Rejects `implied` for actions whose implied policy has no closed form."""
        if self.trust_region == "implied" and not has_implied_policy(action):
            raise errors.ConfigError(
                "agent.trust_region must be 'auto', 'behaviour' or 'none' for "
                f"{observations.describe_action(action)}, got 'implied', which has no closed form "
                "for them. Use --config.agent.trust_region=auto."
            )

    def for_actions(self, action: specs.BoundedArray) -> Self:
        """Returns the configuration with the trust region that `auto` selects.

        `auto` selects `implied` (section 4.3) if the implied policy has a closed form, otherwise
        `behaviour`, the KL(pi || mu) of algorithm 1.
        """
        if self.trust_region != "auto":
            return self
        selected = "implied" if has_implied_policy(action) else "behaviour"
        return dataclasses.replace(self, trust_region=selected)


def has_implied_policy(action: specs.BoundedArray) -> bool:
    """Returns whether the implied policy (LASER, equation 3) has a closed form.

    Its normalisation is a sum over all actions. For continuous actions it is an integral, and for
    independent parts the minimum of two products does not factor into the parts.
    """
    return isinstance(action, specs.DiscreteArray)
