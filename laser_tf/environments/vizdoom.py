"""ViZDoom's standard scenarios (Kempka et al. 2016): Doom from the player's eyes."""

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
from laser_tf.environments import python_config

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
class VizDoomConfig(python_config.WorkerConfig):
    """Configuration of ViZDoom's scenarios."""

    suite: str = "vizdoom"
    task: str = "basic"
    max_frames_per_episode: int = 108_000  # env frames; then the episode is cut
    action_repeat: int = 4  # env frames; an agent step

    frames_per_second: ClassVar[float] = 35.0
    known_tasks: ClassVar[tuple[str, ...]] = tuple(ACTIONS)
    engine_repeats_actions: ClassVar[bool] = True
    package: ClassVar[str] = "vizdoom"
    missing_package: ClassVar[str] = "ViZDoom is not installed: run make vizdoom"

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `WorkerConfig`."""
        return functools.partial(Doom, task, self.action_repeat)


class Doom(dm_env.Environment):
    """One game in colour, uint8 [72, 96, 3], in its own engine process.

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
    cut that leaves the discount at 1: frames do not show how much time is left. This class counts
    it, because the engine would withhold the last frame, whose value is bootstrapped. After a real
    end there is no frame: the last observation repeats the one before.
    """

    def __init__(self, task: str, action_repeat: int, seed: int):
        """Starts the engine; files that it keeps are in `./_vizdoom`."""
        self._files = tempfile.TemporaryDirectory(prefix="laser_tf_vizdoom_")
        self._game = _start_game(task, seed, pathlib.Path(self._files.name))
        self._max_steps = -(-self._game.get_episode_timeout() // action_repeat)
        self._game.set_episode_timeout(0)
        buttons = [button.name for button in self._game.get_available_buttons()]
        self._buttons = [[int(name in held) for name in buttons] for held in ACTIONS[task]]
        self._action_repeat = action_repeat

    def reset(self) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        self._game.new_episode()
        self._steps = 0
        return dm_env.restart(self._observe())

    def step(self, action: int) -> dm_env.TimeStep:
        """Holds the buttons of an action for `action_repeat` frames."""
        reward = self._game.make_action(self._buttons[action], self._action_repeat)
        self._steps += 1
        if self._game.is_episode_finished():  # A finished game has no screen.
            return dm_env.termination(reward, _shrink(self._screen))
        end = dm_env.truncation if self._steps == self._max_steps else dm_env.transition
        return end(reward, self._observe())

    def _observe(self) -> np.ndarray:
        self._screen = self._game.get_state().screen_buffer
        return _shrink(self._screen)

    def observation_spec(self) -> specs.BoundedArray:
        """See `dm_env.Environment`."""
        return observations.image_spec(HEIGHT, WIDTH, 3)

    def action_spec(self) -> specs.DiscreteArray:
        """See `dm_env.Environment`."""
        return specs.DiscreteArray(len(self._buttons), name="action")

    def render(self) -> np.ndarray:
        """Returns the screen, 120x160."""
        return self._screen

    def close(self) -> None:
        """Ends the engine."""
        self._game.close()
        self._files.cleanup()


def _start_game(task: str, seed: int, folder: pathlib.Path) -> Any:
    """Starts an engine that shows nothing, plays no sound and writes its settings to a folder."""
    import vizdoom as library

    game = library.DoomGame()
    game.load_config(str(pathlib.Path(library.scenarios_path) / f"{task}.cfg"))
    game.set_screen_format(library.ScreenFormat.RGB24)
    game.set_screen_resolution(library.ScreenResolution.RES_160X120)
    game.set_window_visible(False)
    game.set_sound_enabled(False)
    game.set_doom_config_path(str(folder / "settings.ini"))
    game.set_seed(seed)
    # Engines that started at the same time were seen to hang on a busy machine.
    lock = pathlib.Path(tempfile.gettempdir()) / f"laser_tf_vizdoom_{os.getuid()}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        game.init()
    return game


def _shrink(screen: np.ndarray) -> np.ndarray:
    """Means over areas of 5/3 x 5/3 pixels: uint8 [120, 160, 3] to uint8 [72, 96, 3]."""
    rows = _SHARES @ screen.reshape(SCREEN_HEIGHT // 5, 5, -1).astype(np.float32)
    pixels = rows.reshape(-1, 5 * 3) @ _COLOUR_SHARES
    return (pixels + 0.5).astype(np.uint8).reshape(HEIGHT, WIDTH, 3)
