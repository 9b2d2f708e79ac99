"""Stands in for DeepMind's `deepmind_lab`, with the assertions of its API.

Each call adds a line of JSON to the file FAKE_DEEPMIND_LAB_LOG, since the engine may be in another
process.
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
SHORTEST = 90  # Env frames of an episode, which lasts up to 40 more.


def _record(**call):
    with pathlib.Path(os.environ["FAKE_DEEPMIND_LAB_LOG"]).open("a") as log:
        log.write(json.dumps({"process": os.getpid(), **call}) + "\n")


class Lab:
    """A level with frames, rewards and length that depend on its seed and the actions."""

    def __init__(self, level, observations, config, level_cache=None):
        assert set(observations) <= set(_OBSERVATIONS)
        assert all(isinstance(text, str) for pair in config.items() for text in pair)
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
        assert isinstance(seed, int) and 0 <= seed < 2**31
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
        assert self._running and action.dtype == np.intc
        for value, (lowest, highest) in zip(action.tolist(), _ACTION_RANGES, strict=True):
            assert lowest <= value <= highest
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
        assert self._running
        shape = (int(self._config["height"]), int(self._config["width"]), 3)
        frame = np.random.RandomState(self._state).randint(256, size=shape, dtype=np.uint8)
        # The text changes within an episode, as in language_execute_random_task.
        text = f"Find object {self._frames // 40}" if _LEVELS + "language" in self._level else ""
        everything = {"RGB_INTERLEAVED": frame, "INSTR": text}
        return {name: everything[name] for name in self._names}

    def close(self):
        _record(call="close")
        self._running = False
        return True
