"""Random numbers for many games at once, without a generator for each."""

import numpy as np


def draw(streams: np.ndarray) -> np.ndarray:
    """SplitMix64's output function (Steele et al. 2014).

    Hashing (stream, episode) gives each environment its random numbers without a generator, and
    so a loop, for each.

    Args:
      streams: uint64 [N]; neighbouring numbers give unrelated ones.

    Returns:
      uint64 [N], evenly spread over all 64 bits.
    """
    numbers = streams + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def action_generator(seed: int) -> np.random.Generator:
    """Returns a generator for random actions, independent of the environments' own generators.

    An environment usually draws from `np.random.default_rng(seed)`. Actions from the same generator
    would follow its targets.

    Args:
      seed: Seed of the environments.
    """
    (actions,) = np.random.SeedSequence(seed).spawn(1)
    return np.random.default_rng(actions)
