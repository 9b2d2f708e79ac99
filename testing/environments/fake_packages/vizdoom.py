"""Stands in for the package vizdoom, with the names, types and rules that the adapter uses.

A finished episode has no state, ignores actions and repeats its last reward. A timeout is an end,
too. Screens are noise, and a player dies after a number of frames that depends on the seed.
"""

import enum
import pathlib

import numpy as np

scenarios_path = "/fake/scenarios"

_ALL_BUTTONS = "MOVE_LEFT MOVE_RIGHT ATTACK MOVE_FORWARD MOVE_BACKWARD TURN_LEFT TURN_RIGHT"
Button = enum.Enum("Button", _ALL_BUTTONS)
ScreenFormat = enum.Enum("ScreenFormat", "CRCGCB RGB24")
ScreenResolution = enum.Enum("ScreenResolution", "RES_160X120 RES_320X240")

# Buttons, timeout, start time, living reward and death penalty of the files of vizdoom 1.3.2.
SCENARIOS = {
    "basic": ("MOVE_LEFT MOVE_RIGHT ATTACK", 300, 14, -1.0, 0.0),
    "deadly_corridor": (_ALL_BUTTONS, 2100, 1, 0.0, 100.0),
    "defend_the_center": ("TURN_LEFT TURN_RIGHT ATTACK", 2100, 10, 0.0, 1.0),
    "defend_the_line": ("TURN_LEFT TURN_RIGHT ATTACK", 0, 10, 0.0, 1.0),
    "health_gathering": ("TURN_LEFT TURN_RIGHT MOVE_FORWARD", 2100, 1, 1.0, 100.0),
    "my_way_home": ("TURN_LEFT TURN_RIGHT MOVE_FORWARD MOVE_LEFT MOVE_RIGHT", 2100, 10, -1e-4, 0.0),
    "predict_position": ("TURN_LEFT TURN_RIGHT ATTACK", 300, 16, -0.001, 0.0),
    "take_cover": ("MOVE_LEFT MOVE_RIGHT", 0, 1, 1.0, 0.0),
}
FRAMES_OF_LIFE = (60, 200)  # Sampled uniformly.
_PEACEFUL = ("basic", "my_way_home", "predict_position")

running_games = []  # Between init and close, in the order of their start.


class GameState:
    """A frame: screen_buffer uint8 [height, width, 3]."""

    def __init__(self, screen_buffer):
        self.screen_buffer = screen_buffer


class DoomGame:
    """One engine."""

    def __init__(self):
        self.settings = {}
        self.pressed = []  # Actions of the current episode.
        self._running = False

    def load_config(self, config):
        self._scenario = pathlib.Path(config).stem
        names, self._timeout, self._start, self._living, self._penalty = SCENARIOS[self._scenario]
        self._buttons = [Button[name] for name in names.split()]
        return True

    def set_screen_format(self, format):  # noqa: A002
        self.settings["format"] = format

    def set_screen_resolution(self, resolution):
        self.settings["resolution"] = resolution

    def set_window_visible(self, visiblity):
        self.settings["window"] = visiblity

    def set_sound_enabled(self, sound):
        self.settings["sound"] = sound

    def set_doom_config_path(self, file_path):
        self.settings["config_path"] = file_path

    def set_seed(self, seed):
        self.settings["seed"] = seed

    def set_episode_timeout(self, timeout):
        self._timeout = timeout

    def get_episode_timeout(self):
        return self._timeout

    def get_available_buttons(self):
        return list(self._buttons)

    def init(self):
        self._random = np.random.default_rng(self.settings["seed"])
        self._running = True
        running_games.append(self)
        self.new_episode()

    def new_episode(self):
        assert self._running
        self._time = self._start
        self._death = self._start + int(self._random.integers(*FRAMES_OF_LIFE))
        if self._scenario in _PEACEFUL:
            self._death = np.inf
        self._noise = int(self._random.integers(2**31))
        self.pressed = []

    def make_action(self, action, tics=1):
        assert self._running
        if self.is_episode_finished():
            return self._last_reward
        self.pressed.append((list(action), tics))
        self._last_reward = 0.0
        for _ in range(tics):
            self._time += 1
            self._last_reward += self._living - self._penalty * self.is_player_dead()
            if self.is_episode_finished():
                break
        return self._last_reward

    def is_player_dead(self):
        return self._time >= self._death

    def is_episode_timeout_reached(self):
        return self._timeout != 0 and self._time >= self._start + self._timeout

    def is_episode_finished(self):
        assert self._running
        return self.is_player_dead() or self.is_episode_timeout_reached()

    def get_state(self):
        assert self._running
        if self.is_episode_finished():
            return None
        noise = np.random.default_rng([self._noise, self._time])
        return GameState(noise.integers(256, size=[120, 160, 3], dtype=np.uint8))

    def close(self):
        if self._running:
            running_games.remove(self)
        self._running = False
