"""Catch for gymnasium, in which one environment hangs on demand, and a configuration with it."""

import dataclasses
import pathlib
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from ml_collections import config_dict

_ROWS, _COLUMNS = 10, 5


class HangingCatch(gymnasium.Env):
    """Is `laser_tf.environments.catch`; the first step that finds a file removes it and hangs."""

    observation_space = spaces.Box(0, 255, [_ROWS, _COLUMNS, 1], np.uint8)
    action_space = spaces.Discrete(3)

    def __init__(self, hang_file: str = "hang"):
        self._hang_file = pathlib.Path(hang_file)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        """Drops a ball from a random column."""
        super().reset(seed=seed)
        self._ball = self.np_random.integers(_COLUMNS)
        self._paddle, self._row = _COLUMNS // 2, 0
        return self._observe(), {}

    def _observe(self) -> np.ndarray:
        board = np.zeros([_ROWS, _COLUMNS, 1], np.uint8)
        board[self._row, self._ball] = board[-1, self._paddle] = 255
        return board

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Moves the ball down and the paddle by `action - 1`; hangs if the file exists."""
        if self._hang_file.exists():
            self._hang_once()
        self._row += 1
        self._paddle = int(np.clip(self._paddle + action - 1, 0, _COLUMNS - 1))
        is_over = self._row == _ROWS - 1
        reward = (1.0 if self._ball == self._paddle else -1.0) if is_over else 0.0
        return self._observe(), reward, is_over, False, {}

    def _hang_once(self) -> None:
        try:
            self._hang_file.unlink()
        except FileNotFoundError:  # Another environment was faster.
            return
        time.sleep(86_400)


if "HangingCatch-v0" not in gymnasium.registry:  # The configuration is read as another module.
    gymnasium.register("HangingCatch-v0", HangingCatch)


def get_config() -> config_dict.ConfigDict:
    """Returns `laser:catch` on the catch that can hang."""
    from configs import laser  # Environment workers do not need these modules.
    from laser_tf.environments import gymnasium_suite

    config = laser.get_config("catch")
    config.environment = dataclasses.asdict(
        gymnasium_suite.GymnasiumConfig(
            task="tools.chaos.hanging_catch:HangingCatch-v0",
            num_envs=8,
            num_workers=1,
            reply_seconds=10.0,
        )
    )
    return config
