"""What can be configured of ACER's baselines: A3C, Trust-A3C, TIS and Trust-TIS."""

import dataclasses

from laser_tf import config_checks, errors
from laser_tf.agents import average_policy_config

KIND = "a3c"
NONE, TRUNCATED = "none", "truncated"


@dataclasses.dataclass(frozen=True, kw_only=True)
class A3CConfig(average_policy_config.AveragePolicyConfig):
    """Hyper-parameters of the baselines' acting and loss (ACER, section 6 and appendix E.2).

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    kind: str = KIND
    trust_region: bool = False  # whether updates are held near the average policy: Trust-A3C
    importance: str = NONE  # none: A3C, on-policy; truncated: TIS, by products of ratios
    truncation: float = 5.0  # ratio; where the products are cut; appendix E.2

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "kind", (KIND,))
        config_checks.check_choice(self, "importance", (NONE, TRUNCATED))

    def check_replay(
        self, *, replays: bool, learns_from_replay_alone: bool, replays_sequences: bool
    ) -> None:
        """See `AgentConfig`."""
        super().check_replay(
            replays=replays,
            learns_from_replay_alone=learns_from_replay_alone,
            replays_sequences=replays_sequences,
        )
        if replays and self.importance == NONE:
            raise errors.ConfigError(
                "importance is 'none', but A3C's gradient is on-policy, and what is replayed is "
                "not: use agent.importance=truncated (TIS), or replay_fraction, replay_ratio and "
                "steps_per_update 0"
            )
