"""Configuration of the trunk, with the same keys for every agent."""

import dataclasses
from collections.abc import Sequence

from laser_tf import config_checks, errors, user_code

# The keys of torsos.TORSOS with the min height and width, in pixels, that the convolutions accept.
MIN_IMAGE_SIZES = {
    "shallow": 20, "shallow_equalised": 20, "deep": 1, "strided_deep": 1, "dqn": 36, "nature": 36,
    "reactor": 36, "minatar": 3, "flat": 1,
}  # fmt: skip
TORSOS = tuple(MIN_IMAGE_SIZES)
# "none" for a feed-forward network, and the keys of cores.CORES.
CORES = ("none", "lstm", "preco_lstm")
# Besides the scale 1/255: nothing, the mean of each image subtracted, or the running mean of each
# pixel subtracted and its running deviation divided.
IMAGE_NORMALISATIONS = (NONE, CENTER, RUNNING) = ("none", "center", "running")
ACTIVATIONS = ("tanh", "relu")  # The keys of torsos.ACTIVATIONS.

TOO_LARGE = "the weights of a larger layer do not fit into memory"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrunkConfig:
    """Trunk configuration; the configurations of agents are subclasses.

    Raises:
      ValueError: If a value is out of range.
    """

    torso: str = (  # shallow, shallow_equalised, deep, strided_deep, dqn, nature, reactor, minatar,
        "shallow"  # flat or my_module:MyTorso
    )
    channel_multiplier: int = 1  # factor; scales the channels of the torso
    image_normalisation: str = "none"  # none, center (by image) or running (by pixel)
    mlp_units: tuple[int, ...] = (64, 64)  # units; hidden layers of the MLP over vectors
    mlp_activation: str = "tanh"  # activation of the MLP: tanh or relu, see networks.torsos.MLP
    normalise_vectors: bool = True  # normalise vectors by their running mean and deviation
    fusion_units: int = 0  # units; layer over all leaves of an observation; 0: no such layer
    core: str = "none"  # recurrent core: lstm or preco_lstm; none: feed-forward
    core_size: int = 256  # units; size of the core
    core_memory_span: int = 0  # agent steps; max memory of a fresh core (lstm_cell.py); 0: short

    def __post_init__(self):
        config_checks.check_types(self)
        if not user_code.is_path(self.torso):
            config_checks.check_choice(self, "torso", TORSOS)
        config_checks.check_choice(self, "core", CORES)
        config_checks.check_choice(self, "image_normalisation", IMAGE_NORMALISATIONS)
        config_checks.check_choice(self, "mlp_activation", ACTIVATIONS)
        # At these limits a convolution of the deep torso has 10^10 weights and an LSTM kernel has
        # 2 * 10^9.
        config_checks.check_range(self, "channel_multiplier", 1, 1_024, TOO_LARGE)
        config_checks.check_range(self, "core_size", 1, 16_384, TOO_LARGE)
        config_checks.check_range(self, "fusion_units", 0, 16_384, TOO_LARGE)
        check_layers(self, "mlp_units")
        if self.core_memory_span != 0 and self.core_memory_span < 3:
            raise errors.ConfigError(
                f"core_memory_span must be 0 or at least 3, got {self.core_memory_span}. Use e.g. "
                "100 agent steps."
            )


def check_layers(config: TrunkConfig, name: str) -> None:
    """Raises ValueError if a layer in field `name` is empty or too large."""
    units = getattr(config, name)
    if not all(1 <= size <= 16_384 for size in units):
        raise errors.ConfigError(
            f"{name} must be between 1 and 16384 for each layer, got {units}. Larger layers do not "
            "fit into memory. Use e.g. (64, 64)."
        )


def check_image(torso: str, shape: Sequence[int]) -> None:
    """Raises ConfigError if images [H, W, C] are too small for a torso of `TORSOS`."""
    side, min_size = min(shape[:2]), MIN_IMAGE_SIZES[torso]
    if side < min_size:
        alternatives = [name for name, size in MIN_IMAGE_SIZES.items() if side >= size]
        # Torsos for small images come first.
        alternatives.sort(key=lambda name: name not in ("minatar", "flat"))
        raise errors.ConfigError(
            f"agent.torso must accept images of {'x'.join(map(str, shape))}, got {torso!r}, which "
            f"needs at least {min_size}x{min_size} pixels. Use larger images or "
            f"--config.agent.torso={' or '.join(alternatives)}."
        )
