"""ViZDoom's standard scenarios (Kempka et al. 2016): Doom from the player's eyes."""

import concurrent.futures
import dataclasses
import os
import pathlib
import signal
import tempfile
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from dm_env import specs

from laser_tf import config_checks, errors, observations
from laser_tf.environments import environment_config, names, serial_environment

HEIGHT, WIDTH = 72, 96
SCREEN_HEIGHT, SCREEN_WIDTH = 120, 160
# Five pixels of a screen make three of an observation: the shares of each in each.
_SHARES = np.array([[3, 2, 0, 0, 0], [0, 1, 3, 1, 0], [0, 0, 0, 2, 3]], np.float32) / 5
_COLOUR_SHARES = np.kron(_SHARES, np.eye(3, dtype=np.float32)).T  # [5 * 3, 3 * 3]

_TURNS = (("TURN_LEFT",), ("TURN_RIGHT",))
_STRAFES = (("MOVE_LEFT",), ("MOVE_RIGHT",))
_ATTACK = (("ATTACK",),)
_FORWARD = (("MOVE_FORWARD",),)
_CURVES = (("MOVE_FORWARD", "TURN_LEFT"), ("MOVE_FORWARD", "TURN_RIGHT"))
_WAIT = ((),)

# The buttons that each action holds down: none, each alone, and those that make a curve.
ACTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "basic": (*_WAIT, *_STRAFES, *_ATTACK),
    "deadly_corridor": (
        *_WAIT,
        *_STRAFES,
        *_ATTACK,
        *_FORWARD,
        ("MOVE_BACKWARD",),
        *_TURNS,
        *_CURVES,
    ),
    "defend_the_center": (*_WAIT, *_TURNS, *_ATTACK),
    "defend_the_line": (*_WAIT, *_TURNS, *_ATTACK),
    "health_gathering": (*_WAIT, *_TURNS, *_FORWARD, *_CURVES),
    "my_way_home": (*_WAIT, *_TURNS, *_FORWARD, *_STRAFES, *_CURVES),
    "predict_position": (*_WAIT, *_TURNS, *_ATTACK),
    "take_cover": (*_WAIT, *_STRAFES),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class VizDoomConfig(environment_config.EnvironmentConfig):
    """Configuration of ViZDoom's scenarios."""

    suite: str = "vizdoom"
    task: str = "basic"
    max_frames_per_episode: int = 108_000  # env frames; then the episode is cut
    num_threads: int = 0  # threads; that wait for engines at once; 0: one for each core
    action_repeat: int = 4  # env frames; an agent step

    frames_per_second: ClassVar[float] = 35.0

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(
            self, "num_threads", 0, 1_024, environment_config.TOO_MANY_THREADS
        )

    def check_task(self, task: str) -> str:
        """See `EnvironmentConfig`."""
        return names.check("ViZDoom scenario", task, ACTIONS)

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> "VizDoom":
        """See `EnvironmentConfig`."""
        return VizDoom(self, task, num_envs, seed)


class VizDoom(serial_environment.SerialEnvironment):
    """N games in colour, uint8 [72, 96, 3], each in its own engine process.

    Actions are those of `ACTIONS`. Rewards are the scenario's own, raw and summed over the repeated
    frames; scenarios differ by two orders of magnitude, so that a learner clips or scales them:

      basic              -1 a frame, -5 a shot, about 100 for the monster
      deadly_corridor    the way gone towards the vest (about 2,000 in all), -100 for death
      defend_the_center  1 a monster, -1 for death
      defend_the_line    1 a monster, -1 for death
      health_gathering   1 a frame, -100 for death
      my_way_home        1 for the vest, -0.0001 a frame
      predict_position   1 for the monster, -0.001 a frame
      take_cover         1 a frame

    The player's death or the scenario's goal ends an episode with discount 0. Every timeout is a
    cut that leaves the discount at 1: frames do not show how much time is left. The base class
    counts it, because the engine would withhold the last frame, the one to bootstrap from. After a
    real end there is no frame: the last observation repeats the one before.

    Engines keep files in `./_vizdoom` and die with the environment. A process that is killed
    outright (SIGKILL) leaves its engines behind, idle.
    """

    def __init__(self, config: VizDoomConfig, task: str, num_envs: int, seed: int):
        """Starts the engines; see `EnvironmentConfig.make`."""
        library = _load_library()
        self._files = tempfile.TemporaryDirectory(prefix="laser_tf_vizdoom_")
        self._pool = concurrent.futures.ThreadPoolExecutor(config.num_threads or os.cpu_count())
        # One after the other: two that started at once were seen to hang on a busy machine.
        self._games = [
            _start_game(
                library, task, seed + index, pathlib.Path(self._files.name) / f"{index}.ini"
            )
            for index in range(num_envs)
        ]
        timeout = self._games[0].get_episode_timeout()
        for game in self._games:
            game.set_episode_timeout(0)
        self._buttons = _button_states(self._games[0], ACTIONS[task])
        self._screens = np.zeros((num_envs, SCREEN_HEIGHT, SCREEN_WIDTH, 3), np.uint8)
        self._frames = np.zeros((num_envs, HEIGHT, WIDTH, 3), np.uint8)
        super().__init__(
            num_envs,
            action_repeat=config.action_repeat,
            observation=observations.image_spec(HEIGHT, WIDTH, 3),
            action=specs.DiscreteArray(len(self._buttons), name="action"),
        )
        self.max_steps_per_episode = -(-timeout // config.action_repeat)

    def _map(self, *arguments: Any) -> Iterator:
        return self._pool.map(*arguments)

    def _start_episode(self, index: int) -> None:
        self._games[index].new_episode()
        self._take_screen(index)

    def _take_action(self, index: int, action: int) -> tuple[float, float, bool]:
        game = self._games[index]
        reward = game.make_action(self._buttons[action], self.action_repeat)
        ended = game.is_episode_finished()
        if not ended:  # A finished game has no screen.
            self._take_screen(index)
        return reward, 1.0 - ended, ended

    def _take_screen(self, index: int) -> None:
        self._screens[index] = self._games[index].get_state().screen_buffer
        self._frames[index] = _shrink(self._screens[index])

    def _observations(self) -> np.ndarray:
        return self._frames.copy()

    def render(self, index: int) -> np.ndarray:
        """The screen, 120x160."""
        return self._screens[index].copy()

    def close(self) -> None:
        """Ends the engines and the threads."""
        super().close()
        for game in self._games:
            game.close()
        self._pool.shutdown()
        self._files.cleanup()


def _load_library() -> ModuleType:
    # Not at the top: a test or a command that plays no Doom need not have it installed.
    try:
        import vizdoom
    except ModuleNotFoundError as error:
        raise errors.MissingPackageError("ViZDoom is not installed: run make vizdoom") from error
    return vizdoom


def _start_game(library: ModuleType, task: str, seed: int, settings: pathlib.Path) -> Any:
    """Starts an engine that shows nothing, plays no sound and writes its settings to a file."""
    game = library.DoomGame()
    game.load_config(str(pathlib.Path(library.scenarios_path) / f"{task}.cfg"))
    game.set_screen_format(library.ScreenFormat.RGB24)
    game.set_screen_resolution(library.ScreenResolution.RES_160X120)
    game.set_window_visible(False)
    game.set_sound_enabled(False)
    game.set_doom_config_path(str(settings))
    game.set_seed(seed)
    # The engine inherits the mask. A terminal sends Ctrl-C, and its own end, to every process of a
    # command: engines that died of it would take the actor with them.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGHUP])
    try:
        game.init()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return game


def _shrink(screen: np.ndarray) -> np.ndarray:
    """Means over areas of 5/3 x 5/3 pixels: uint8 [120, 160, 3] to uint8 [72, 96, 3]."""
    rows = _SHARES @ screen.reshape(SCREEN_HEIGHT // 5, 5, -1).astype(np.float32)
    pixels = rows.reshape(-1, 5 * 3) @ _COLOUR_SHARES
    return (pixels + 0.5).astype(np.uint8).reshape(HEIGHT, WIDTH, 3)


def _button_states(game: Any, actions: tuple[tuple[str, ...], ...]) -> list[list[int]]:
    """For each action, 1 or 0 for each button in the game's order."""
    names = [button.name for button in game.get_available_buttons()]
    return [[int(name in held) for name in names] for held in actions]
