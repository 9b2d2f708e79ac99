"""A game with an image and vectors in a nest to see and continuous actions to take."""

import numpy as np
from dm_env import specs

from laser_tf import observations, types
from laser_tf.environments import base

LENGTH = 7  # steps of an episode


class ContinuousGame(base.BatchedEnvironment):
    """Observations are drawn at random and move with the last action; actions are [2]."""

    def __init__(self, num_envs: int, seed: int):
        super().__init__(
            num_envs,
            action_repeat=1,
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

    def _step(self, actions: np.ndarray) -> types.EnvOutput:
        self._step_count += 1
        # One game after the other begins anew, so that a batch holds starts and other steps.
        phase = (self._step_count + np.arange(self.num_envs)) % (LENGTH + 1)
        return types.EnvOutput(
            observation=self._observe(actions),
            reward=np.where(phase == 0, 0, actions[:, 1]).astype(np.float32),
            discount=(phase != LENGTH).astype(np.float32),
            is_first=phase == 0,
            previous_action=actions,
        )

    def render(self, index: int) -> np.ndarray:
        raise NotImplementedError
