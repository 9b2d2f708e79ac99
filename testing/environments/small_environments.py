"""Environments of users for gymnasium and dm_env, some of which fail on request."""

import os
import pathlib
import random
import socket
import sys
import time

import dm_env
import gymnasium
import numpy as np
from dm_env import specs
from gymnasium import spaces


class Corridor(gymnasium.Env):
    """The exit is at the side that observations name."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}

    def __init__(self, length=3, max_steps=20, render_mode=None):
        self.observation_space = spaces.Box(-1.0, 1.0, [2], np.float32)
        self.action_space = spaces.Discrete(2)
        self.render_mode = render_mode
        self._length, self._max_steps = length, max_steps

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._exit = self.np_random.choice([-1, 1])
        self._place, self._steps = 0, 0
        return self._show(), {}

    def _show(self):
        return np.array([self._place / self._length, self._exit], np.float32)

    def step(self, action):
        self._place += 2 * int(action) - 1
        self._steps += 1
        is_out = abs(self._place) == self._length
        reward = float(is_out and self._place * self._exit > 0)
        return self._show(), reward, is_out, self._steps >= self._max_steps, {}

    def render(self):
        picture = np.zeros([8, 8 * (2 * self._length + 1), 3], np.uint8)
        picture[:, 8 * (self._place + self._length) :][:, :8] = 255
        return picture


gymnasium.register("Corridor-v0", Corridor)


class Breaking(Corridor):
    """Fails in the first episode of an environment with seed `bad_seed`, or in other episodes.

    These are all episodes (`every_time`), or every n-th episode of the process (`each`).
    """

    episodes = 0

    def __init__(self, fault="", bad_seed=0, at=2, every_time=False, each=0, in_reset=False):
        super().__init__()
        self._each = each
        self._fault, self._bad_seed, self._at = fault, bad_seed, at
        self._every_time, self._in_reset = every_time, in_reset
        self._is_bad = every_time

    def reset(self, *, seed=None, options=None):
        Breaking.episodes += 1
        is_due = self._each and Breaking.episodes >= self._each
        if self._fault != "raise, die":
            is_due = is_due and not Breaking.episodes % self._each
        self._is_bad = self._every_time or is_due or seed == self._bad_seed
        observation, info = super().reset(seed=seed)
        if self._in_reset and self._is_bad:
            observation = self._break(observation, 0.0)[0]
        return observation, info

    def step(self, action):
        observation, reward, *ends = super().step(action)
        if self._is_bad and self._steps == self._at and not self._in_reset:
            observation, reward = self._break(observation, reward)
        return observation, reward, *ends

    def _break(self, observation, reward):
        match self._fault:
            case "raise":
                raise KeyError("the ball\nis lost")
            case "raise, die" if Breaking.episodes == self._each:
                raise KeyError("the ball is lost")
            case "die" | "raise, die":
                os._exit(3)
            case "hang":
                time.sleep(600)
            case "nan":
                observation = observation * np.nan
            case "shape":
                observation = observation[:1]
        return observation, reward


gymnasium.register("Breaking-v0", Breaking)


class Rendered(Corridor):
    """Renders RGBA, images of odd and changing sizes, or none at step 2, or dies."""

    def __init__(self, kind="", render_mode=None):
        super().__init__(render_mode=render_mode)
        self._kind = kind

    def render(self):
        image = super().render()
        match self._kind:
            case "die":
                os._exit(3)
            case "rgba":
                return np.concatenate([image, np.zeros_like(image[..., :1])], axis=2)
            case "odd and smaller":
                return image[: 7 - self._steps, : 55 - self._steps]
            case "odd and larger":
                return np.pad(image, [(0, 4), (0, 4), (0, 0)])[
                    : 7 + self._steps, : 55 + self._steps
                ]
        return image if self._steps < 2 else None


gymnasium.register("Rendered-v0", Rendered)


class Timed(gymnasium.Env):
    """Terminates after `ends` steps and truncates after `cut`; shows process and step."""

    observation_space = spaces.Box(0, 1e9, [3], np.float64)
    action_space = spaces.Discrete(3, start=-1)

    def __init__(self, ends=99, cut=99):
        self._ends, self._cut = ends, cut

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        return np.array([os.getpid(), 0, 0], np.float64), {}

    def step(self, action):
        self._steps += 1
        observation = np.array([os.getpid(), self._steps, action + 1], np.float64)
        return observation, 1.0, self._steps >= self._ends, self._steps >= self._cut, {}


gymnasium.register("Timed-v0", Timed)


class Zero(Timed):
    """The same with actions from 0 on."""

    action_space = spaces.Discrete(3)

    def step(self, action):
        return super().step(action - 1)


gymnasium.register("Zero-v0", Zero)


class Started(gymnasium.Env):
    """Shows bool, texts and integers that do not start at 0."""

    observation_space = spaces.Dict(
        board=spaces.Box(0, 1, [6, 5], bool),
        grid=spaces.MultiDiscrete(
            np.full([6, 5], 4), dtype=np.uint8, start=np.arange(30).reshape([6, 5])
        ),
        kind=spaces.Discrete(3, start=1),
        parts=spaces.MultiDiscrete([3, 5], start=[10, 20]),
        vector=spaces.Box(-1, 1, [2], np.float64),
        word=spaces.Text(20, charset="Go n"),
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        board = self.np_random.integers(2, size=[6, 5]).astype(bool)
        vector = self.np_random.uniform(-1, 1, 2)
        observation = {
            "board": board,
            "grid": np.arange(30, dtype=np.uint8).reshape([6, 5]) + board,
            "kind": 3,
            "parts": np.array([11, 23]),
            "vector": vector,
            "word": "Go on",
        }
        return observation, {}

    def step(self, action):
        return self.reset()[0], 0.0, True, False, {}


gymnasium.register("Started-v0", Started)


class Dials(gymnasium.Env):
    """Shows two categories, and a number if `level`; the action is to name them.

    The reward is the fraction of named categories, minus the distance to the number. An episode has
    five steps.
    """

    def __init__(self, level=False):
        pair = spaces.MultiDiscrete([3, 4], start=[5, -1])
        observed = spaces.MultiDiscrete([3, 4], start=[1, 0])
        number = spaces.Box(-1, 1, [1], np.float64)
        self._level = level
        self.action_space = spaces.Dict(pair=pair, level=number) if level else pair
        self.observation_space = (
            spaces.Tuple([observed, number]) if level else spaces.Tuple([observed])
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._draw(), {}

    def _draw(self):
        self._pair = self.np_random.integers([3, 4])
        self._number = self.np_random.uniform(-0.8, 0.8, 1)
        shown = self._pair + [1, 0]
        return (shown, self._number) if self._level else (shown,)

    def step(self, action):
        assert self.action_space.contains(action), action
        pair = action["pair"] if self._level else action
        reward = np.mean(pair - [5, -1] == self._pair)
        if self._level:
            reward -= np.abs(action["level"] - self._number).item()
        self._steps += 1
        return self._draw(), reward, False, self._steps == 5, {}


gymnasium.register("Dials-v0", Dials)


class Beacons(dm_env.Environment):
    """Two lamps and a number: press the button of the lit lamp, or of the dark lamp if it is 1."""

    def __init__(self, seed=0, steps=5):
        self._random = np.random.default_rng(seed)
        self._steps = steps

    def observation_spec(self):
        return {
            "picture": specs.BoundedArray([6, 6, 3], np.uint8, 0, 255, "picture"),
            "body": (specs.Array([2], np.float64, "body"), specs.DiscreteArray(2, name="flip")),
        }

    def action_spec(self):
        return specs.BoundedArray([], np.int64, 5, 6, "button")

    def reset(self):
        self._step = 0
        return dm_env.restart(self._draw())

    def step(self, action):
        if self._step >= self._steps:  # As dm_env requires.
            return self.reset()
        reward = float(action - 5 == self._lit ^ self._flip)
        self._step += 1
        if self._step < self._steps:
            return dm_env.transition(reward, self._draw())
        end = dm_env.termination if self._random.random() < 0.5 else dm_env.truncation
        return end(reward, self._draw())

    def _draw(self):
        self._lit, self._flip = (int(value) for value in self._random.integers(2, size=2))
        picture = np.zeros([6, 6, 3], np.uint8)
        picture[:, 3 * self._lit :][:, :3] = 255
        return {"picture": picture, "body": (self._random.random(2), self._flip)}


def counted_beacons(log, seed=0):
    """Returns `Beacons` and adds a line to a file."""
    with pathlib.Path(log).open("a") as file:
        file.write("made\n")
    return Beacons(seed)


class Remote(Beacons):
    """Asks a server before each step, and ends its process if the server answers "exit"."""

    def __init__(self, port, seed=0):
        super().__init__(seed)
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=60)

    def step(self, action):
        self._connection.sendall(b"step")
        if self._connection.recv(4) == b"exit":
            os._exit(3)
        return super().step(action)


class Constant(dm_env.Environment):
    """Shows the same at every step; an episode has one step."""

    ACTIONS = specs.DiscreteArray(2)

    def __init__(self, value):
        self._value = value

    def observation_spec(self):
        return specs.Array(self._value.shape, self._value.dtype)

    def action_spec(self):
        return self.ACTIONS

    def reset(self):
        return dm_env.restart(self._value)

    def step(self, action):
        return dm_env.termination(0.0, self._value)


class Still(Constant):
    """Never ends and has no rewards; its number is 3, or random if `unseeded`."""

    ACTIONS = specs.BoundedArray([2], np.float32, -1, [1, 2])

    def __init__(self, unseeded=False):
        super().__init__(np.float32(int.from_bytes(os.urandom(3)) if unseeded else 3))

    def step(self, action):
        return dm_env.transition(0.0, self._value)


class Images(Constant):
    """Shows images of one value."""

    def __init__(self, shape, value=255, dtype="uint8"):
        super().__init__(np.full(shape, value, dtype))


class Unseeded(Constant):
    """Samples its observation from the global generators at its creation, or at each step."""

    def __init__(self, every_step=False):
        super().__init__(np.array([random.random(), np.random.random()]))
        self._every_step = every_step

    def step(self, action):
        if self._every_step:
            self._value = np.array([random.random(), np.random.random()])
        return super().step(action)


class Named(Beacons):
    """`Beacons` with a chosen key of its observation."""

    def __init__(self, key):
        super().__init__()
        self._key = key

    def observation_spec(self):
        return {self._key: super().observation_spec()["body"]}

    def _draw(self):
        return {self._key: super()._draw()["body"]}


def sized_by_seed(seed):
    return Constant(np.zeros([1 + seed], np.float32))


def not_an_environment():
    return 3


def modules():
    """Raises an error that names what the worker has imported."""
    raise ValueError(" ".join(sorted(sys.modules)))


NUMBER = 3
