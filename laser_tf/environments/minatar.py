"""MinAtar (Young and Tian 2019): five games on a board of 10x10 with binary channels."""

import dataclasses
import importlib.util
import pathlib
from typing import Any, ClassVar

import numpy as np
from dm_env import specs

from laser_tf import config_checks, errors, observations
from laser_tf.environments import adapter, base, environment_config, suites

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
_SIZE = 10
_MAX_CHANNELS = 10  # Of any game.
_NUM_ACTIONS = 6  # Of every game: stay, left, up, right, down, fire.
_PIXELS = 16  # Of a cell in an image.


@dataclasses.dataclass(frozen=True, kw_only=True)
class MinAtarConfig(environment_config.EnvironmentConfig):
    """Configuration of MinAtar's games."""

    suite: str = "minatar"
    task: str = "breakout"
    max_frames_per_episode: int = 108_000  # env frames; limit that truncates an episode
    sticky_actions: float = 0.0  # probability; of repeating the last action; 0.1 in the paper

    known_tasks: ClassVar[tuple[str, ...]] = GAMES
    tasks_share_specs: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "sticky_actions", 0, below=1)

    def check_task(self, task: str) -> str:
        """Takes "breakout" and, as MinAtar registers it with gymnasium, "MinAtar/Breakout-v1"."""
        return super().check_task(suites.of_gymnasium_id(task, r"MinAtar/(\w+)-v\d+", GAMES))

    def protocol(self) -> dict[str, Any]:
        """See `EnvironmentConfig`."""
        return super().protocol() | {"sticky_actions": self.sticky_actions}

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> "MinAtar":
        """See `EnvironmentConfig`."""
        return MinAtar(self, task, num_envs, seed)


class MinAtar(base.BatchedEnvironment):
    """N games stepped in a Python loop; boards are uint8 [10, 10, channels], 0 or 255."""

    def __init__(self, config: MinAtarConfig, task: str, num_envs: int, seed: int):
        """Creates the games, whose difficulty rises over time; see `EnvironmentConfig.make`."""
        game_class = _load_game(task)
        self._games = [game_class(ramping=True) for _ in range(num_envs)]
        self._random = [np.random.RandomState(seed + index) for index in range(num_envs)]
        for game, random in zip(self._games, self._random, strict=True):
            game.random = random
        self._sticky_actions = config.sticky_actions
        self._last_actions = [0] * num_envs  # Sticky or not; they outlive an episode.
        # One agent for several games needs the same channels in all of them.
        is_alone = len(config.tasks) == 1
        channels = self._games[0].state_shape()[-1] if is_alone else _MAX_CHANNELS
        super().__init__(
            num_envs,
            action_repeat=config.action_repeat,
            observation=observations.image_spec(_SIZE, _SIZE, channels),
            action=specs.DiscreteArray(_NUM_ACTIONS, name="action"),
        )

    def _reset(self) -> np.ndarray:
        for game in self._games:
            game.reset()
        return self._boards()

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        results = []
        for index, (action, starts) in enumerate(zip(actions.tolist(), is_first, strict=True)):
            if starts:
                self._games[index].reset()
            results.append((0.0, 1.0, False) if starts else self._take_action(index, action))
        reward, discount, is_last = map(np.array, zip(*results, strict=True))
        return base.Transition(self._boards(), reward, discount, is_last)

    def _take_action(self, index: int, action: int) -> tuple[float, float, bool]:
        def take_frame() -> tuple[float, float, bool]:
            # As in MinAtar's own `Environment.act`.
            is_sticky = self._random[index].rand() < self._sticky_actions
            taken = self._last_actions[index] if is_sticky else action
            self._last_actions[index] = taken
            reward, terminated = self._games[index].act(taken)
            return reward, 1.0 - terminated, terminated

        return adapter.repeat_action(take_frame, self.action_repeat)

    def _boards(self) -> np.ndarray:
        boards = np.zeros((self.num_envs, *self._observation_spec.shape), np.uint8)
        for board, game in zip(boards, self._games, strict=True):
            state = game.state()
            board[..., : state.shape[-1]] = state
        boards *= 255
        return boards

    def render(self, index: int) -> np.ndarray:
        """Returns the board with a colour for each channel; later channels cover earlier ones."""
        channels = self._games[index].state_shape()[-1]
        hues = np.linspace(0, 2 * np.pi, channels, endpoint=False)
        colours = 128 + 127 * np.cos(hues[:, None] + np.array([0, 2, 4]) * np.pi / 3)
        state = self._games[index].state()
        image = np.zeros((_SIZE, _SIZE, 3), np.uint8)
        for channel in range(channels):
            image[state[:, :, channel] != 0] = colours[channel]
        return image.repeat(_PIXELS, 0).repeat(_PIXELS, 1)


def _load_game(task: str) -> type[Any]:
    """Loads a game from its file: the package itself imports plotting libraries, for seconds."""
    package = importlib.util.find_spec("minatar")
    if package is None:
        raise errors.MissingPackageError("MinAtar is not installed: pip install minatar")
    path = pathlib.Path(package.origin).parent / "environments" / f"{task}.py"
    module_spec = importlib.util.spec_from_file_location(f"minatar_{task}", path)
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    return module.Env
