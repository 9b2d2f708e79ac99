"""What the network under an agent's heads is made of: the same keys for every agent."""

import dataclasses

from laser_tf import config_checks

# The keys of torsos.TORSOS and, after "none" for a feed-forward network, of cores.CORES.
TORSOS = ("shallow", "deep", "dqn", "minatar", "flat")
CORES = ("none", "lstm", "preco_lstm")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrunkConfig:
    """Of the trunk; agents' configurations are subclasses.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    torso: str = "shallow"  # of images, one of TORSOS
    channel_multiplier: int = 1  # of its convolutions
    center_observation: bool = False  # subtract each image's mean, see networks.torsos
    mlp_units: tuple[int, ...] = (64, 64)  # of each hidden layer over vectors
    normalise_vectors: bool = True  # by their running mean and deviation
    core: str = "none"  # memory, one of CORES; "none": feed-forward
    core_size: int = 256  # units of the core
    core_memory_span: int = 0  # steps that a fresh core remembers, see networks.lstm_cell; 0: few

    def __post_init__(self):
        config_checks.check_choice(self, "torso", TORSOS)
        config_checks.check_choice(self, "core", CORES)
        for name in ("channel_multiplier", "core_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use 1 or more")
        if not all(isinstance(units, int) and units >= 1 for units in self.mlp_units):
            raise ValueError(f"mlp_units is {self.mlp_units}: use layers of 1 or more units")
        if self.core_memory_span != 0 and self.core_memory_span < 3:
            raise ValueError(
                f"core_memory_span is {self.core_memory_span}: use 3 steps or more, or 0"
            )
