"""What the network under an agent's heads is made of: the same keys for every agent."""

import dataclasses
from collections.abc import Sequence

from laser_tf import config_checks, errors

# The keys of torsos.TORSOS, each with the height and width, in pixels, of the smallest image that
# its convolutions can read.
SMALLEST_IMAGES = {
    "shallow": 20, "deep": 1, "strided_deep": 1, "dqn": 36, "nature": 36, "reactor": 36,
    "minatar": 3, "flat": 1,
}  # fmt: skip
TORSOS = tuple(SMALLEST_IMAGES)
# After "none" for a feed-forward network, the keys of cores.CORES.
CORES = ("none", "lstm", "preco_lstm")
ACTIVATIONS = ("tanh", "relu")  # the keys of torsos.ACTIVATIONS

TOO_LARGE = "a layer of more has too many weights for any memory"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrunkConfig:
    """Of the trunk; agents' configurations are subclasses.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    torso: str = "shallow"  # shallow, deep, strided_deep, dqn, nature, reactor, minatar, flat
    channel_multiplier: int = 1  # factor; of the torso's channels
    center_observation: bool = False  # subtract each image's mean, see networks.torsos
    normalise_images: bool = False  # each pixel by its running mean and deviation
    mlp_units: tuple[int, ...] = (64, 64)  # units; of each hidden layer over vectors
    mlp_activation: str = "tanh"  # of these layers: tanh or relu, see networks.torsos.MLP
    normalise_vectors: bool = True  # by their running mean and deviation
    fusion_units: int = 0  # units; of a layer over all leaves of an observation; 0: side by side
    core: str = "none"  # remembers: lstm or preco_lstm; none: feed-forward
    core_size: int = 256  # units; of the core
    core_memory_span: int = 0  # agent steps; that a fresh core remembers (lstm_cell.py); 0: few

    def __post_init__(self):
        config_checks.check_types(self)
        config_checks.check_choice(self, "torso", TORSOS)
        config_checks.check_choice(self, "core", CORES)
        config_checks.check_choice(self, "mlp_activation", ACTIVATIONS)
        if self.center_observation and self.normalise_images:
            raise errors.ConfigError(
                "center_observation and normalise_images are both on: the latter centers each "
                "pixel; switch the former off"
            )
        # At the most, a deep torso's convolution has 10^10 weights and an LSTM's kernel 2 * 10^9.
        config_checks.check_range(self, "channel_multiplier", 1, 1_024, TOO_LARGE)
        config_checks.check_range(self, "core_size", 1, 16_384, TOO_LARGE)
        config_checks.check_range(self, "fusion_units", 0, 16_384, TOO_LARGE)
        if not all(1 <= units <= 16_384 for units in self.mlp_units):
            raise errors.ConfigError(
                f"mlp_units is {self.mlp_units}: use layers of 1 to 16384 units"
            )
        if self.core_memory_span != 0 and self.core_memory_span < 3:
            raise errors.ConfigError(
                f"core_memory_span is {self.core_memory_span}: use 3 steps or more, or 0"
            )


def check_image(torso: str, shape: Sequence[int]) -> None:
    """Checks that a torso can read images.

    Args:
      torso: One of `TORSOS`.
      shape: [H, W, C] of the images.

    Raises:
      ValueError: If the images are too small.
    """
    side = min(shape[:2])
    if side < SMALLEST_IMAGES[torso]:
        others = [name for name, smallest in SMALLEST_IMAGES.items() if side >= smallest]
        raise errors.ConfigError(
            f"agent.torso={torso!r} cannot read images of {'x'.join(map(str, shape))}: use "
            f"{SMALLEST_IMAGES[torso]}x{SMALLEST_IMAGES[torso]} pixels or more, or "
            f"--config.agent.torso={' or '.join(sorted(others, key=_for_small_images))}"
        )


def _for_small_images(torso: str) -> bool:
    """Sorts the torsos that are made for small images first."""
    return torso not in ("minatar", "flat")
