"""Catch, as bsuite has it: a ball falls, a paddle must be under it. For tests and first tries."""

import dataclasses
import time

import numpy as np
from dm_env import specs

from laser_tf import errors, observations
from laser_tf.environments import base, environment_config, names, random_streams

ROWS, COLUMNS = 10, 5
STEPS = ROWS - 1  # of a game
_PIXELS = 16  # of a cell in a picture


@dataclasses.dataclass(frozen=True, kw_only=True)
class CatchConfig(environment_config.SmallConfig):
    """Configuration of catch."""

    suite: str = "catch"
    task: str = "catch"
    wait_seconds: float = 0.0  # seconds; that a step waits, as slow environments do

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.wait_seconds <= 60:
            raise errors.ConfigError(f"wait_seconds is {self.wait_seconds}: use 0 to 60")

    def check_task(self, task: str) -> str:
        """See `EnvironmentConfig`."""
        return names.check("task of catch", task, ("catch",))

    @property
    def max_steps_per_episode(self) -> int:
        """See `EnvironmentConfig`."""
        own = STEPS
        return min(own, super().max_steps_per_episode or own)

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> "Catch":
        """See `EnvironmentConfig`."""
        return Catch(self, num_envs, seed)


class Catch(base.BatchedEnvironment):
    """N boards of 10 rows by 5 columns; reward 1 or -1 when the ball lands, after 9 steps.

    With `reward_offset` each of the 9 steps returns so much more; all episodes being equally long,
    the best policy is the same.

    A board is uint8 [10, 5, 1] with 255 at ball and paddle. Actions: 0 left, 1 stay, 2 right.
    """

    def __init__(self, config: CatchConfig, num_envs: int, seed: int):
        """Makes the boards; board i samples its columns from `seed + i`."""
        super().__init__(
            num_envs,
            observation=observations.image_spec(ROWS, COLUMNS, 1),
            action=specs.DiscreteArray(3, name="action"),
        )
        self._streams = random_streams.draw(seed + np.arange(num_envs, dtype=np.uint64))
        self._episodes = np.zeros(num_envs, np.uint64)
        self._reward_offset = config.reward_offset
        self._wait_seconds = config.wait_seconds

    def _reset(self) -> np.ndarray:
        self._ball_row = np.zeros(self.num_envs, int)
        self._ball_column = np.zeros(self.num_envs, int)
        self._paddle = np.zeros(self.num_envs, int)
        self._drop(np.ones(self.num_envs, bool))
        return self._boards()

    def _drop(self, games: np.ndarray) -> None:
        """Starts the games of a mask bool [N]."""
        if not games.any():
            return
        self._episodes += games
        self._ball_row[games] = 0
        columns = random_streams.draw(self._streams + self._episodes) % COLUMNS
        self._ball_column[games] = columns[games]
        self._paddle[games] = COLUMNS // 2

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
        games = np.arange(self.num_envs)
        boards[games, self._ball_row, self._ball_column] = 255
        boards[games, ROWS - 1, self._paddle] = 255
        return boards

    def render(self, index: int) -> np.ndarray:
        """The board in white on black."""
        return self._boards()[index].repeat(_PIXELS, 0).repeat(_PIXELS, 1).repeat(3, 2)
