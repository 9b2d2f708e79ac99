"""The T-maze (Bakker 2001): a cue at the start shows the arm to choose at the end of a corridor.

Only the first observation shows the cue, so an agent needs memory for a mean return above 0.
"""

import dataclasses
from typing import ClassVar

import numpy as np
from dm_env import specs

from laser_tf import config_checks, observations
from laser_tf.environments import base, small_environment

SIZE = 3
UP, RIGHT, DOWN, LEFT = range(4)
_START_COLUMN, _CORRIDOR_COLUMN, _JUNCTION_COLUMN = range(3)  # Of an observation.
_PIXELS = 32  # Of a cell in an image.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TMazeConfig(small_environment.SmallConfig):
    """Configuration of the T-maze."""

    suite: str = "tmaze"
    task: str = "tmaze"
    corridor_length: int = 10  # cells; between the cue and the junction

    known_tasks: ClassVar[tuple[str, ...]] = ("tmaze",)

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(
            self, "corridor_length", 1, 1_000_000, "the image of the maze would be too large"
        )

    def _longest_episode(self) -> int:
        return 2 * (self.corridor_length + 2)  # Twice the shortest path.

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> "TMaze":
        """See `EnvironmentConfig`."""
        return TMaze(self, num_envs, seed)


class TMaze(small_environment.SmallEnvironment):
    """N mazes: start, `corridor_length` cells, junction, and an arm above and below the junction.

    An observation is uint8 [3, 3, 1], 0 or 255. The agent is in the middle row: left at the start,
    centre in the corridor, right at the junction. The cue is the cell above or below the start, in
    the first observation of an episode only. The last observation has the agent in an arm.

    Actions: 0 up, 1 right, 2 down, 3 left. The arm on the side of the cue returns 1, the other arm
    -1, both with discount 0. A step forward returns 0, so the best return is 1 for any length. A
    step back or into a wall returns -1 / (corridor_length + 2), where the shortest path has
    corridor_length + 2 steps.

    After twice the shortest path the episode is truncated. Without a penalty, a learner could
    prefer to walk forever. An episode at a wall returns -2, less than the wrong arm.
    """

    def __init__(self, config: TMazeConfig, num_envs: int, seed: int):
        super().__init__(
            config,
            num_envs,
            seed,
            observation=observations.image_spec(SIZE, SIZE, 1),
            action=specs.DiscreteArray(4, name="action"),
        )
        self._junction = config.corridor_length + 1
        self._penalty = 1 / (config.corridor_length + 2)

    def _reset(self) -> np.ndarray:
        self._cell = np.zeros(self.num_envs, int)  # 0 at the start.
        self._row = np.ones(self.num_envs, int)  # Of an observation: 0 and 2 in the arms.
        self._cue_row = np.zeros(self.num_envs, int)  # 0 or 2.
        self._enter(self._over)
        return self._images(self._over)

    def _enter(self, starting: np.ndarray) -> None:
        """Starts episodes of the mazes of a mask bool [N]."""
        self._cell[starting], self._row[starting] = 0, 1
        self._cue_row[starting] = 2 * self._sample(starting, 2)

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        at_junction = self._cell == self._junction
        turns = at_junction & ((actions == UP) | (actions == DOWN))
        forward = (actions == RIGHT) & ~at_junction
        back = (actions == LEFT) & (self._cell > 0)
        self._cell += forward.astype(int) - back
        self._row = np.where(turns, actions, self._row)  # UP and DOWN are row numbers, too.
        arms = np.where(self._row == self._cue_row, 1.0, -1.0)
        reward = np.where(turns, arms, np.where(forward, 0.0, -self._penalty))
        reward += self._reward_offset
        self._enter(is_first)
        return base.Transition(self._images(is_first), reward, 1.0 - turns, turns)

    def _images(self, entering: np.ndarray) -> np.ndarray:
        images = np.zeros((self.num_envs, SIZE, SIZE, 1), np.uint8)
        column = np.full(self.num_envs, _CORRIDOR_COLUMN)
        column[self._cell == 0] = _START_COLUMN
        column[self._cell == self._junction] = _JUNCTION_COLUMN
        images[np.arange(self.num_envs), self._row, column] = 255
        entering = np.flatnonzero(entering)
        images[entering, self._cue_row[entering], _START_COLUMN] = 255
        return images

    def render(self, index: int) -> np.ndarray:
        """Returns the maze: paths in grey, the agent in white, the correct arm in green."""
        maze = np.zeros((SIZE, self._junction + 1, 3), np.uint8)
        maze[1] = maze[:, -1] = 64
        maze[self._cue_row[index], -1] = (0, 160, 0)
        maze[self._row[index], self._cell[index]] = 255
        return maze.repeat(_PIXELS, 0).repeat(_PIXELS, 1)
