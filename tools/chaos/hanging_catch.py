"""Catch for gymnasium, of which one game hangs when it is told to."""

import pathlib
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

_ROWS, _COLUMNS = 10, 5


class HangingCatch(gymnasium.Env):
    """As `laser_tf.environments.catch`; the first step that finds a file removes it and hangs."""

    observation_space = spaces.Box(0, 255, [_ROWS, _COLUMNS, 1], np.uint8)
    action_space = spaces.Discrete(3)

    def __init__(self, hang_file: str = "hang"):
        self._hang_file = pathlib.Path(hang_file)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        """Drops a ball from a random column."""
        super().reset(seed=seed)
        self._ball = self.np_random.integers(_COLUMNS)
        self._paddle, self._row = _COLUMNS // 2, 0
        return self._show(), {}

    def _show(self) -> np.ndarray:
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
        return self._show(), reward, is_over, False, {}

    def _hang_once(self) -> None:
        try:
            self._hang_file.unlink()
        except FileNotFoundError:  # another game was quicker
            return
        time.sleep(86_400)


gymnasium.register("HangingCatch-v0", HangingCatch)
