"""Configuration of ACER's baselines: A3C, Trust-A3C, TIS and Trust-TIS."""

import dataclasses

from laser_tf import config_checks, errors
from laser_tf.agents import average_policy_config

KIND = "a3c"
NONE, TRUNCATED = "none", "truncated"


@dataclasses.dataclass(frozen=True, kw_only=True)
class A3CConfig(average_policy_config.AveragePolicyConfig):
    """Hyper-parameters of the baselines (ACER, section 6 and appendix E.2)."""

    kind: str = KIND
    trust_region: bool = False  # keep the policy close to the average policy (Trust-A3C, Trust-TIS)
    importance: str = NONE  # weights: none (A3C, on-policy) or truncated (TIS, products of ratios)
    truncation: float = 5.0  # ratio; max product of importance ratios; appendix E.2

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "kind", (KIND,))
        config_checks.check_choice(self, "importance", (NONE, TRUNCATED))

    def check_scheme(self, scheme: str) -> None:
        """See `AgentConfig`."""
        super().check_scheme(scheme)
        if scheme != "online" and self.importance == NONE:
            raise errors.ConfigError(
                f"replay.scheme must be online for agent.importance {NONE!r}, got {scheme!r}. "
                "A3C's gradient is on-policy: use --config.replay.scheme=online, or "
                "--config.agent.importance=truncated (TIS)"
            )
