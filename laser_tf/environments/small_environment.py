"""Common parts of the small suites for tests and controlled experiments: catch and the T-maze."""

import abc
import dataclasses
from typing import Any

import numpy as np

from laser_tf import config_checks
from laser_tf.environments import base, environment_config


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmallConfig(environment_config.EnvironmentConfig):
    """Configuration of a suite with one task of the same name."""

    reward_offset: float = 0.0  # reward; added to each agent step

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(
            self, "reward_offset", -1_000, 1_000, "float32 would round the other rewards"
        )
        config_checks.check_range(self, "action_repeat", 1, 1, "each action moves one cell")

    @abc.abstractmethod
    def _longest_episode(self) -> int:
        """Returns the agent steps of the longest episode without `max_frames_per_episode`."""

    @property
    def max_steps_per_episode(self) -> int:
        """See `EnvironmentConfig`."""
        own = self._longest_episode()
        return min(own, super().max_steps_per_episode or own)

    def protocol(self) -> dict[str, Any]:
        """See `EnvironmentConfig`."""
        return super().protocol() | {"reward_offset": self.reward_offset}


class SmallEnvironment(base.BatchedEnvironment):
    """N environments of a few cells; environment i samples a number per episode from `seed + i`."""

    def __init__(self, config: SmallConfig, num_envs: int, seed: int, **specs: Any):
        super().__init__(num_envs, **specs)
        self._streams = _hash(seed + np.arange(num_envs, dtype=np.uint64))
        self._episodes = np.zeros(num_envs, np.uint64)
        self._reward_offset = config.reward_offset

    def _sample(self, starting: np.ndarray, num_values: int) -> np.ndarray:
        """Returns numbers below `num_values` for the environments of a mask that start episodes."""
        self._episodes += starting
        return (_hash(self._streams + self._episodes) % num_values)[starting]


def _hash(numbers: np.ndarray) -> np.ndarray:
    """Applies SplitMix64's output function (Steele et al. 2014) to uint64 [N].

    A hash of (stream, episode) needs no loop over environments, as generators would.
    """
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
