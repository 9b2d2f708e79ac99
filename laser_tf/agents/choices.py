"""What all agents can be configured by, without TensorFlow: networks and reward clips.

The names are the keys of `networks.torsos.TORSOS`, `networks.cores.CORES` and
`ops.reward_clipping.REWARD_CLIPS`.
"""

from typing import Any

from laser_tf import config_checks

TORSOS = ("shallow", "deep", "dqn", "minatar", "flat")
CORES = ("none", "lstm", "preco_lstm")  # "none": feed-forward
REWARD_CLIPS = ("none", "unit", "optimistic_asymmetric")

TOO_LARGE = "a layer of more has too many weights for any memory"


def check_sizes(config: Any) -> None:
    """Checks what sizes the torso and the core.

    Args:
      config: an agent's.

    Raises:
      ValueError: for a size out of range.
    """
    # At the most, a deep torso's convolution has 10^10 weights and an LSTM's kernel 2 * 10^9.
    config_checks.check_range(config, "channel_multiplier", 1, 1_024, TOO_LARGE)
    config_checks.check_range(config, "core_size", 1, 16_384, TOO_LARGE)
    if config.core_memory_span != 0 and config.core_memory_span < 3:
        raise ValueError(
            f"core_memory_span is {config.core_memory_span}: use 3 steps or more, or 0"
        )
