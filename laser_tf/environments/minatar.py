"""MinAtar (Young and Tian 2019): five games on a board of 10x10 with binary channels."""

import difflib

import numpy as np
from dm_env import specs

from laser_tf import types
from laser_tf.environments import base

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
SIZE = 10
NUM_ACTIONS = 6
_PIXELS = 16  # of a cell in a picture


def check_task(task: str) -> None:
    """Raises ValueError, with close names, for an unknown game."""
    if task not in GAMES:
        close = difflib.get_close_matches(task, GAMES, n=3) or GAMES
        raise ValueError(f"there is no MinAtar game {task!r}: did you mean {' or '.join(close)}?")


class MinAtar(base.BatchedEnvironment):
    """N games stepped in a Python loop; a step of one game takes about 10 microseconds."""

    def __init__(
        self,
        task: str,
        num_envs: int,
        seed: int,
        *,
        sticky_actions: float,
        max_frames_per_episode: int,
    ):
        """Game i is seeded with `seed + i`.

        Args:
          task: one of `GAMES`.
          num_envs: N.
          seed: see above.
          sticky_actions: probability that the action before is repeated; 0.1 in the paper.
          max_frames_per_episode: a longer game is cut, without a discount of 0.
        """
        super().__init__(num_envs, action_repeat=1)
        check_task(task)
        # Imported here: it takes seconds, for plotting libraries that are not needed.
        from minatar import environment

        self._games = [
            environment.Environment(task, sticky_action_prob=sticky_actions)
            for _ in range(num_envs)
        ]
        for index, game in enumerate(self._games):
            game.seed(seed + index)
        self._max_frames = max_frames_per_episode
        self._channels = self._games[0].state_shape()[2]

    def observation_spec(self) -> specs.BoundedArray:
        """The board: uint8 [10, 10, channels], 0 or 255."""
        return specs.BoundedArray((SIZE, SIZE, self._channels), np.uint8, 0, 255, "board")

    def action_spec(self) -> specs.DiscreteArray:
        """All six actions, in every game."""
        return specs.DiscreteArray(NUM_ACTIONS)

    def reset(self) -> types.EnvOutput:
        """See the base class."""
        self._over = np.zeros(self.num_envs, bool)
        self._lengths = np.zeros(self.num_envs, int)
        for index in range(self.num_envs):
            self._start(index)
        return base.first_output(self._boards())

    def _start(self, index: int) -> None:
        game = self._games[index]
        game.last_action = 0
        game.reset()
        self._lengths[index] = 0

    def _step(self, actions: np.ndarray) -> types.EnvOutput:
        is_first = self._over
        rewards = np.zeros(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, bool)
        for index, action in enumerate(actions.tolist()):
            if is_first[index]:
                self._start(index)
            else:
                rewards[index], terminated[index] = self._games[index].act(action)
        self._lengths += ~is_first
        self._over = terminated | (self._lengths >= self._max_frames)
        return types.EnvOutput(
            observation=self._boards(),
            reward=rewards,
            discount=1 - terminated.astype(np.float32),
            is_first=is_first,
            previous_action=actions,
        )

    def _boards(self) -> np.ndarray:
        boards = np.empty((self.num_envs, SIZE, SIZE, self._channels), bool)
        for index, game in enumerate(self._games):
            boards[index] = game.state()
        return boards * np.uint8(255)

    def render(self, index: int) -> np.ndarray:
        """The board with a colour for each channel; later channels cover earlier ones."""
        hues = np.linspace(0, 2 * np.pi, self._channels, endpoint=False)
        colours = 128 + 127 * np.cos(hues[:, None] + np.array([0, 2, 4]) * np.pi / 3)
        state = self._games[index].state()
        picture = np.zeros((SIZE, SIZE, 3), np.uint8)
        for channel in range(self._channels):
            picture[state[:, :, channel] != 0] = colours[channel]
        return picture.repeat(_PIXELS, 0).repeat(_PIXELS, 1)
