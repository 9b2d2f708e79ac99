"""Stands in for DeepMind's `deepmind_lab`: its API and its strictness, with games of nothing.

What python/dmlab_module.c refuses is refused here too. Every call goes into the file that the
variable FAKE_DEEPMIND_LAB_LOG names, a line of JSON each, as the engine may be in another process.
"""

import json
import os
import pathlib
import sys
import tempfile
import zlib

import numpy as np

_LEVELS = "contributed/dmlab30/"
_OBSERVATIONS = ("RGB_INTERLEAVED", "INSTR")
_ACTION_RANGES = ((-512, 512), (-512, 512), (-1, 1), (-1, 1), (0, 1), (0, 1), (0, 1))
SHORTEST = 90  # env frames of an episode; they last up to 40 more


def _record(**call):
    with pathlib.Path(os.environ["FAKE_DEEPMIND_LAB_LOG"]).open("a") as log:
        log.write(json.dumps({"process": os.getpid(), **call}) + "\n")


class Lab:
    """A level whose frames, rewards and length come from its seed and the actions before."""

    def __init__(self, level, observations, config=None, renderer="software", level_cache=None):
        config = config or {}
        if not isinstance(level, str) or type(observations) is not list or type(config) is not dict:
            raise TypeError("level must be str, observations list, config dict")
        if not all(isinstance(text, str) for pair in config.items() for text in pair):
            raise TypeError("bad argument type for built-in operation")
        if renderer not in ("software", "hardware"):
            raise RuntimeError(f'Failed to set renderer, actual "{renderer}"!')
        for name in observations:
            if name not in _OBSERVATIONS:
                raise ValueError(f"Unknown observation '{name}'.")
        if level.endswith("_test") and config.get("allowHoldOutLevels") != "true":
            raise RuntimeError("Failed to init environment - \"Must set 'allowHoldOutLevels'\"")
        _record(
            call="Lab",
            level=level,
            observations=observations,
            config=config,
            tensorflow="tensorflow" in sys.modules,
        )
        self._level, self._names, self._config = level, observations, config
        self._cache, self._running, self._frames = level_cache, False, 0

    def reset(self, episode=-1, seed=None):
        if not isinstance(seed, int) or not 0 <= seed < 2**31:
            raise ValueError(f"'seed' must be int or None, was '{type(seed).__name__}'.")
        _record(call="reset", seed=seed)
        self._random = np.random.RandomState([seed, int(self._config.get("mixerSeed", "0"))])
        self._length = SHORTEST + self._random.randint(41)
        self._frames, self._state, self._running = 0, seed, True
        if self._cache:
            self._compile()
        return True

    def _compile(self):
        key = f"{self._level.rpartition('/')[2]}_{zlib.crc32(self._level.encode()):08x}"
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "map.pk3")
            fetched = self._cache.fetch(key, path)
            if not fetched:
                pathlib.Path(path).write_text(self._level)
                self._cache.write(key, path)
            assert pathlib.Path(path).read_text() == self._level
            _record(call="compile", key=key, fetched=bool(fetched))

    def step(self, action, num_steps=1):
        if not self._running:
            raise RuntimeError("Environment in wrong status to advance.")
        if action.shape != (7,):
            raise ValueError("action must have shape (7)")
        if action.dtype != np.intc:
            raise ValueError("action must have dtype np.intc")
        for value, (lowest, highest) in zip(action.tolist(), _ACTION_RANGES, strict=True):
            assert lowest <= value <= highest, "the engine's behaviour is undefined here"
        _record(call="step", action=action.tolist(), num_steps=num_steps)
        reward = 0.0
        for _ in range(num_steps):
            self._frames += 1
            self._state = zlib.crc32(bytes(str((self._state, action.tolist())), "ascii"))
            reward += self._state % 3 - 1
            if self._frames == self._length:
                self._running = False
                break
        return reward

    def is_running(self):
        return self._running

    def observations(self):
        if not self._running:
            raise RuntimeError("Environment in wrong status for call to observations()")
        shape = (int(self._config["height"]), int(self._config["width"]), 3)
        frame = np.random.RandomState(self._state).randint(256, size=shape, dtype=np.uint8)
        # The text changes within an episode, as language_execute_random_task's does.
        text = f"Find object {self._frames // 40}" if _LEVELS + "language" in self._level else ""
        everything = {"RGB_INTERLEAVED": frame, "INSTR": text}
        return {name: everything[name] for name in self._names}

    def close(self):
        _record(call="close")
        self._running = False
        return True
