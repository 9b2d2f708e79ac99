"""Atari games by ALE's own vector environment."""

import difflib

import numpy as np
from ale_py import roms, vector_env
from dm_env import specs

from laser_tf import types
from laser_tf.environments import base

HEIGHT, WIDTH = 84, 84
SCREEN_HEIGHT, SCREEN_WIDTH = 210, 160


def check_task(task: str) -> None:
    """Raises ValueError, with close names, for a game that ale-py does not ship."""
    games = roms.get_all_rom_ids()
    if task not in games:
        close = difflib.get_close_matches(task, games, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "names are like 'ms_pacman'"
        raise ValueError(f"there is no Atari game {task!r}: {hint}")


class Atari(base.BatchedEnvironment):
    """N games with the papers' preprocessing: 84x84 grey frames, action repeat, no-op starts.

    Rewards are raw and frames are not stacked: clipping and stacking belong to the learner.
    """

    def __init__(
        self,
        task: str,
        num_envs: int,
        seed: int,
        *,
        num_threads: int,
        action_repeat: int,
        no_op_max: int,
        max_frames_per_episode: int,
        sticky_actions: float,
        full_action_space: bool,
        life_loss_is_end: bool,
        rendering: bool,
    ):
        """Starts the emulators; the arguments are those of `factory.EnvironmentConfig`."""
        super().__init__(num_envs, action_repeat)
        check_task(task)
        self._seed = seed
        self._life_loss_is_end = life_loss_is_end
        settings = {
            "num_threads": num_threads,
            "frameskip": action_repeat,
            "noop_max": no_op_max + 1,  # ALE draws from 0 to one less
            "max_num_frames_per_episode": max_frames_per_episode,
            "repeat_action_probability": sticky_actions,
            "full_action_space": full_action_space,
            "stack_num": 1,
            "use_fire_reset": False,
            "reward_clipping": False,
        }
        self._games = vector_env.AtariVectorEnv(
            task, num_envs, img_height=HEIGHT, img_width=WIDTH, **settings
        )
        # The same games once more in colour: ALE's vector environment shows one kind of picture.
        self._screens = (
            vector_env.AtariVectorEnv(
                task,
                num_envs,
                img_height=SCREEN_HEIGHT,
                img_width=SCREEN_WIDTH,
                grayscale=False,
                **settings,
            )
            if rendering
            else None
        )
        self._screen: np.ndarray | None = None

    def observation_spec(self) -> specs.BoundedArray:
        """Of a single frame: uint8 [84, 84, 1]."""
        return specs.BoundedArray((HEIGHT, WIDTH, 1), np.uint8, 0, 255, "frame")

    def action_spec(self) -> specs.DiscreteArray:
        """The game's minimal action set, or all 18 actions."""
        return specs.DiscreteArray(int(self._games.single_action_space.n))

    def reset(self) -> types.EnvOutput:
        """See the base class."""
        observation, info = self._games.reset(seed=self._seed)
        if self._screens:
            self._screen, _ = self._screens.reset(seed=self._seed)
        self._lives = info["lives"].copy()
        self._over = np.zeros(self.num_envs, bool)
        return base.first_output(self._channels_last(observation))

    def _step(self, actions: np.ndarray) -> types.EnvOutput:
        observation, reward, terminated, truncated, info = self._games.step(actions)
        if self._screens:
            self._screen = self._screens.step(actions)[0]
        is_first, lives = self._over, info["lives"]
        # Not ALE's own life-loss signal: it looks like a game's end, after which nothing restarts.
        lost_life = (lives < self._lives) & ~is_first
        ends = terminated | (lost_life & self._life_loss_is_end)
        self._over, self._lives = terminated | truncated, lives.copy()
        return types.EnvOutput(
            observation=self._channels_last(observation),
            reward=reward.astype(np.float32),
            discount=1 - ends.astype(np.float32),
            is_first=is_first,
            previous_action=actions,
        )

    def render(self, index: int) -> np.ndarray:
        """The screen, 210x160."""
        if self._screen is None:
            raise RuntimeError("no screens are drawn: make the environment with rendering=True")
        return self._screen[index, 0]

    def close(self) -> None:
        """Ends the emulators."""
        self._games.close()
        if self._screens:
            self._screens.close()

    def _channels_last(self, observation: np.ndarray) -> np.ndarray:
        return observation.reshape(self.num_envs, HEIGHT, WIDTH, 1)
