"""One game of DeepMind Lab, in its own process (see `worker_pool`).

The Python API is described in the engine's docs/users/python_api.md, actions in actions.md.
"""

import pathlib
import shutil
import uuid
from typing import NamedTuple

import numpy as np

HEIGHT, WIDTH = 72, 96  # IMPALA's and all its successors'

# Hessel et al. 2018 (Multi-task Deep Reinforcement Learning with PopArt), the appendix's table of
# actions; R2D2 took it over (section 2.3), and IMPALA was rerun with it. IMPALA's own set had 9.
# Looking is in pixels of mouse movement a frame, the other values are directions or buttons.
# fmt: off
ACTIONS = (
    # look right, look down, strafe right, move forward, fire, jump, crouch
    (0, 0, 0, 1, 0, 0, 0),  # forward
    (0, 0, 0, -1, 0, 0, 0),  # backward
    (0, 0, -1, 0, 0, 0, 0),  # strafe left
    (0, 0, 1, 0, 0, 0, 0),  # strafe right
    (-10, 0, 0, 0, 0, 0, 0),  # look left a little
    (10, 0, 0, 0, 0, 0, 0),  # look right a little
    (-60, 0, 0, 0, 0, 0, 0),  # look left a lot
    (60, 0, 0, 0, 0, 0, 0),  # look right a lot
    (0, 10, 0, 0, 0, 0, 0),  # look down
    (0, -10, 0, 0, 0, 0, 0),  # look up
    (-10, 0, 0, 1, 0, 0, 0),  # forward and look left a little
    (10, 0, 0, 1, 0, 0, 0),  # forward and look right a little
    (-60, 0, 0, 1, 0, 0, 0),  # forward and look left a lot
    (60, 0, 0, 1, 0, 0, 0),  # forward and look right a lot
    (0, 0, 0, 0, 1, 0, 0),  # fire
)
# fmt: on

_FRAME, _TEXT = "RGB_INTERLEAVED", "INSTR"
_SEEDS = 2**31 - 1  # the engine holds a seed in a C int


class Step(NamedTuple):
    """Result of an action, or of a reset (with reward 0)."""

    frame: np.ndarray  # uint8 [72, 96, 3]
    text: str  # the level's instruction; "" where it has none or none was asked for
    reward: float
    terminated: bool  # The level has ended by itself.


class Game:
    """Plays one level; each episode's seed is drawn from the game's own."""

    def __init__(
        self,
        restarts: int,
        *,
        level: str,
        seed: int,
        action_repeat: int,
        with_text: bool,
        settings: dict[str, str],
        level_cache: str,
    ):
        """Starts the engine.

        Args:
          restarts: Number of earlier starts, which had other seeds.
          level: Path of the level's script in the engine.
          seed: Seed of the seeds of episodes.
          action_repeat: Env frames of an agent step.
          with_text: Whether to read the level's instruction.
          settings: Settings of engine and level, in addition to the size of frames.
          level_cache: Directory of compiled maps; "" for none.
        """
        import deepmind_lab

        self._with_text = with_text
        self._lab = deepmind_lab.Lab(
            level,
            [_FRAME, _TEXT] if with_text else [_FRAME],
            config={"width": str(WIDTH), "height": str(HEIGHT), **settings},
            level_cache=LevelCache(level_cache) if level_cache else None,
        )
        self._random = np.random.RandomState([seed, restarts] if restarts else seed)
        self._actions = np.array(ACTIONS, np.intc)
        self._action_repeat = action_repeat

    def reset(self) -> Step:
        """Starts the next episode."""
        self._lab.reset(seed=int(self._random.randint(_SEEDS)))
        self._observe()
        return Step(self._frame, self._text, 0.0, False)

    def step(self, action: int) -> Step:
        """Holds an action of `ACTIONS` for `action_repeat` frames."""
        reward = self._lab.step(self._actions[action], num_steps=self._action_repeat)
        terminated = not self._lab.is_running()
        if not terminated:  # the engine shows nothing of an episode's end: the last frame stays
            self._observe()
        return Step(self._frame, self._text, reward, terminated)

    def _observe(self) -> None:
        observations = self._lab.observations()
        self._frame = observations[_FRAME]
        self._text = observations[_TEXT] if self._with_text else ""

    def close(self) -> None:
        """Ends the engine."""
        self._lab.close()


class LevelCache:
    """Compiled maps in a folder that any number of processes read and write at once.

    Compiling one takes seconds, and many levels have a new one each episode. `fetch` and `write`
    are what the engine calls; a file is named by the engine's key, as in its documentation, so that
    folders of maps that were compiled elsewhere can be used.
    """

    def __init__(self, folder: str):
        """The folder exists already."""
        self._folder = pathlib.Path(folder)

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies the map of a key to `pk3_path`; returns False if it is missing."""
        try:
            shutil.copyfile(self._folder / key, pk3_path)
        except FileNotFoundError:
            return False
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Stores the map at `pk3_path` atomically."""
        path = self._folder / key
        if path.exists():
            return
        own = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            shutil.copyfile(pk3_path, own)
            own.replace(path)
        finally:
            own.unlink(missing_ok=True)
