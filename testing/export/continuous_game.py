"""A game with an image and vectors in a nest to see and continuous actions to take."""

import numpy as np
from dm_env import specs

from laser_tf import observations
from laser_tf.environments import base

LENGTH = 7  # steps of an episode


class ContinuousGame(base.BatchedEnvironment):
    """Observations are drawn at random and move with the last action; actions are [2]."""

    def __init__(self, num_envs: int, seed: int):
        super().__init__(
            num_envs,
            observation={
                "image": observations.image_spec(4, 4, 1),
                "part": {"vector": specs.Array([3], np.float32, "vector")},
                "number": specs.Array([1], np.float32, "number"),
            },
            action=specs.BoundedArray([2], np.float32, [-2, 0], [2, 5], "action"),
        )
        self._generator = np.random.default_rng(seed)
        self._step_count = 0

    def _observe(self, action: np.ndarray) -> dict[str, np.ndarray]:
        size = self.num_envs
        vector = self._generator.normal(5, 3, (size, 4)) + action[:, :1]
        vector = vector.astype(np.float32)
        return {
            "image": self._generator.integers(0, 256, (size, 4, 4, 1), np.uint8),
            "part": {"vector": vector[:, :3]},
            "number": vector[:, 3:],
        }

    def _reset(self) -> dict[str, np.ndarray]:
        return self._observe(np.zeros([self.num_envs, 2]))

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        self._step_count += 1
        # The episodes of the environments start one after the other.
        phase = (self._step_count + np.arange(self.num_envs)) % (LENGTH + 1)
        return base.Transition(
            self._observe(actions), actions[:, 1], phase != LENGTH, phase == LENGTH
        )

    def render(self, index: int) -> np.ndarray:
        raise NotImplementedError
