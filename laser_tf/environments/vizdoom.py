"""ViZDoom's standard scenarios (Kempka et al. 2016)."""

import dataclasses
import fcntl
import functools
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any, ClassVar

import dm_env
import numpy as np
from dm_env import specs

from laser_tf import observations
from laser_tf.environments import adapter, python_config

HEIGHT, WIDTH = 72, 96
SCREEN_HEIGHT = 120
# Shares of five pixels of a screen in three pixels of an observation.
_SHARES = np.array([[3, 2, 0, 0, 0], [0, 1, 3, 1, 0], [0, 0, 0, 2, 3]], np.float32) / 5
_COLOUR_SHARES = np.kron(_SHARES, np.eye(3, dtype=np.float32)).T  # [5 * 3, 3 * 3]

_TURNS = (("TURN_LEFT",), ("TURN_RIGHT",))
_STRAFES = (("MOVE_LEFT",), ("MOVE_RIGHT",))
_ATTACK = (("ATTACK",),)
_FORWARD = (("MOVE_FORWARD",),)
_BACK = (("MOVE_BACKWARD",),)
_CURVES = (("MOVE_FORWARD", "TURN_LEFT"), ("MOVE_FORWARD", "TURN_RIGHT"))
_WAIT = ((),)

# Buttons that each action holds down: none, each alone, and the pairs that make a curve.
ACTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "basic": (*_WAIT, *_STRAFES, *_ATTACK),
    "deadly_corridor": (*_WAIT, *_STRAFES, *_ATTACK, *_FORWARD, *_BACK, *_TURNS, *_CURVES),
    "defend_the_center": (*_WAIT, *_TURNS, *_ATTACK),
    "defend_the_line": (*_WAIT, *_TURNS, *_ATTACK),
    "health_gathering": (*_WAIT, *_TURNS, *_FORWARD, *_CURVES),
    "my_way_home": (*_WAIT, *_TURNS, *_FORWARD, *_STRAFES, *_CURVES),
    "predict_position": (*_WAIT, *_TURNS, *_ATTACK),
    "take_cover": (*_WAIT, *_STRAFES),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class VizDoomConfig(python_config.WorkerConfig):
    """Configuration of ViZDoom's scenarios."""

    suite: str = "vizdoom"
    task: str = "basic"
    max_frames_per_episode: int = 108_000  # env frames; limit that truncates an episode
    action_repeat: int = 4  # env frames; per agent step

    frames_per_second: ClassVar[float] = 35.0
    known_tasks: ClassVar[tuple[str, ...]] = tuple(ACTIONS)
    engine_repeats_actions: ClassVar[bool] = True
    package: ClassVar[str] = "vizdoom"
    missing_package: ClassVar[str] = "ViZDoom is not installed: run make vizdoom"

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `WorkerConfig`."""
        return functools.partial(Doom, task, self.action_repeat)


class Doom(adapter.Adapter):
    """One environment in colour, uint8 [72, 96, 3], in its own engine process.

    Actions hold the buttons of `ACTIONS`. Rewards are raw and summed over the repeated frames.
    Scenarios differ by two orders of magnitude, so a learner should clip or scale them:

      basic              -1 a frame, -5 a shot, about 100 for the monster
      deadly_corridor    progress towards the vest (about 2,000 in all), -100 for death
      defend_the_center  1 a monster, -1 for death
      defend_the_line    1 a monster, -1 for death
      health_gathering   1 a frame, -100 for death
      my_way_home        1 for the vest, -0.0001 a frame
      predict_position   1 for the monster, -0.001 a frame
      take_cover         1 a frame

    The death of the player or the goal of the scenario ends an episode with discount 0. A timeout
    leaves the discount at 1, because frames do not show the remaining time. This class counts the
    steps, because the engine would withhold the last frame, whose value is bootstrapped. After a
    termination there is no frame, so the last observation repeats the previous one.
    """

    def __init__(self, task: str, action_repeat: int, seed: int):
        """Starts the engine, which keeps files in `./_vizdoom`."""
        self._files = tempfile.TemporaryDirectory(prefix="laser_tf_vizdoom_")
        game = _start_game(task, seed, pathlib.Path(self._files.name))
        image = observations.image_spec(HEIGHT, WIDTH, 3)
        super().__init__(game, image, specs.DiscreteArray(len(ACTIONS[task]), name="action"))
        self._max_steps = -(-game.get_episode_timeout() // action_repeat)
        game.set_episode_timeout(0)
        buttons = [button.name for button in game.get_available_buttons()]
        self._buttons = [[int(name in held) for name in buttons] for held in ACTIONS[task]]
        self._action_repeat = action_repeat

    def reset(self) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        self._engine.new_episode()
        self._steps = 0
        return dm_env.restart(self._observe())

    def step(self, action: int) -> dm_env.TimeStep:
        """Holds the buttons of an action for `action_repeat` frames."""
        reward = self._engine.make_action(self._buttons[action], self._action_repeat)
        self._steps += 1
        if self._engine.is_episode_finished():  # A finished episode has no screen.
            return dm_env.termination(reward, _shrink(self._screen))
        end = dm_env.truncation if self._steps == self._max_steps else dm_env.transition
        return end(reward, self._observe())

    def _observe(self) -> np.ndarray:
        self._screen = self._engine.get_state().screen_buffer
        return _shrink(self._screen)

    def render(self) -> np.ndarray:
        """Returns the screen, 120x160."""
        return self._screen

    def close(self) -> None:
        """Ends the engine."""
        super().close()
        self._files.cleanup()


def _start_game(task: str, seed: int, folder: pathlib.Path) -> Any:
    """Starts an engine without window and sound, which writes its settings to a folder."""
    import vizdoom as library

    game = library.DoomGame()
    game.load_config(str(pathlib.Path(library.scenarios_path) / f"{task}.cfg"))
    game.set_screen_format(library.ScreenFormat.RGB24)
    game.set_screen_resolution(library.ScreenResolution.RES_160X120)
    game.set_window_visible(False)
    game.set_sound_enabled(False)
    game.set_doom_config_path(str(folder / "settings.ini"))
    game.set_seed(seed)
    # Engines that start at the same time can hang on a busy machine.
    lock = pathlib.Path(tempfile.gettempdir()) / f"laser_tf_vizdoom_{os.getuid()}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        game.init()
    return game


def _shrink(screen: np.ndarray) -> np.ndarray:
    """Averages areas of 5/3 x 5/3 pixels of uint8 [120, 160, 3] to uint8 [72, 96, 3]."""
    rows = _SHARES @ screen.reshape(SCREEN_HEIGHT // 5, 5, -1).astype(np.float32)
    pixels = rows.reshape(-1, 5 * 3) @ _COLOUR_SHARES
    return (pixels + 0.5).astype(np.uint8).reshape(HEIGHT, WIDTH, 3)
