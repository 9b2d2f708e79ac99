"""Catch, as in bsuite: a ball falls and a paddle must be under it. For tests and first runs."""

import dataclasses
import time
from typing import ClassVar

import numpy as np
from dm_env import specs

from laser_tf import config_checks, observations
from laser_tf.environments import base, small_environment

ROWS, COLUMNS = 10, 5
STEPS = ROWS - 1  # Of an episode.
_PIXELS = 16  # Of a cell in an image.


@dataclasses.dataclass(frozen=True, kw_only=True)
class CatchConfig(small_environment.SmallConfig):
    """Configuration of catch."""

    suite: str = "catch"
    task: str = "catch"
    wait_seconds: float = 0.0  # seconds; that a step waits, as slow environments do

    known_tasks: ClassVar[tuple[str, ...]] = ("catch",)

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "wait_seconds", 0, 60)

    def _longest_episode(self) -> int:
        return STEPS

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> "Catch":
        """See `EnvironmentConfig`."""
        return Catch(self, num_envs, seed)


class Catch(small_environment.SmallEnvironment):
    """N boards of 10 rows by 5 columns; reward 1 or -1 when the ball lands, after 9 steps.

    All episodes are equally long, so `reward_offset` does not change the best policy.

    A board is uint8 [10, 5, 1] with 255 at ball and paddle. Actions: 0 left, 1 stay, 2 right.
    """

    def __init__(self, config: CatchConfig, num_envs: int, seed: int):
        super().__init__(
            config,
            num_envs,
            seed,
            observation=observations.image_spec(ROWS, COLUMNS, 1),
            action=specs.DiscreteArray(3, name="action"),
        )
        self._wait_seconds = config.wait_seconds

    def _reset(self) -> np.ndarray:
        self._ball_row, self._ball_column, self._paddle = np.zeros((3, self.num_envs), int)
        self._drop(self._over)
        return self._boards()

    def _drop(self, starting: np.ndarray) -> None:
        """Starts episodes of the boards of a mask bool [N]."""
        self._ball_row[starting] = 0
        self._ball_column[starting] = self._sample(starting, COLUMNS)
        self._paddle[starting] = COLUMNS // 2

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        if self._wait_seconds:
            time.sleep(self._wait_seconds)
        self._ball_row += 1
        self._paddle = np.clip(self._paddle + actions - 1, 0, COLUMNS - 1)
        self._drop(is_first)
        is_last = self._ball_row == STEPS
        caught = np.where(self._ball_column == self._paddle, 1.0, -1.0)
        reward = np.where(is_last, caught, 0.0) + self._reward_offset
        return base.Transition(self._boards(), reward, 1.0 - is_last, is_last)

    def _boards(self) -> np.ndarray:
        boards = np.zeros((self.num_envs, ROWS, COLUMNS, 1), np.uint8)
        indices = np.arange(self.num_envs)
        boards[indices, self._ball_row, self._ball_column] = 255
        boards[indices, ROWS - 1, self._paddle] = 255
        return boards

    def render(self, index: int) -> np.ndarray:
        """Returns the board in white on black, 160x80."""
        return self._boards()[index].repeat(_PIXELS, 0).repeat(_PIXELS, 1).repeat(3, 2)
