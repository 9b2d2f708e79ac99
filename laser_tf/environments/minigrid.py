"""MiniGrid and BabyAI (Chevalier-Boisvert et al. 2019, 2023): rooms of cells, a text to obey."""

import dataclasses
import sys
from types import ModuleType
from typing import Any

import numpy as np
from dm_env import specs

from laser_tf import config_checks, errors, observations, types
from laser_tf.environments import environment_config, instructions, names, serial_environment

# Of a cell's codes of object (to 10), colour (to 5) and state (to 2; 3 for an agent's direction):
# a torso divides by 255, which would leave MiniGrid's own small codes hardly apart.
CODE_SCALES = (20, 40, 80)
_TRIED_RESETS = 10  # episodes whose texts must fit before a training starts
_PREFIXES = ("MiniGrid-", "BabyAI-")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MiniGridConfig(environment_config.EnvironmentConfig):
    """Configuration of MiniGrid's and BabyAI's tasks."""

    suite: str = "minigrid"
    task: str = "BabyAI-GoToLocal-v0"
    max_frames_per_episode: int = 108_000  # env frames; then the episode is cut
    instruction_length: int = 16  # words; of the longest mission

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "instruction_length", 1, 10_000, "no task shows more")

    def check_task(self, task: str) -> str:
        """Checks a name against those that MiniGrid registers."""
        known = [name for name in _load_gymnasium().registry if name.startswith(_PREFIXES)]
        return names.check("MiniGrid task", task, known, example="MiniGrid-...-v0")

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> "MiniGrid":
        """See `EnvironmentConfig`."""
        return MiniGrid(self, task, num_envs, seed)


class MiniGrid(serial_environment.SerialEnvironment):
    """N games stepped in a Python loop, each with its mission as `text`.

    Its `image` is the cells in front of the agent, uint8 [7, 7, 3] in most tasks: MiniGrid's
    codes of object, colour and state times `CODE_SCALES`. The agent's direction is left out: the
    view turns with the agent.

    Reward is the task's own: at success 1 - 0.9 * (steps / the task's most steps), otherwise 0.
    The task's step limit is a cut that leaves the discount at 1.
    """

    def __init__(self, config: MiniGridConfig, task: str, num_envs: int, seed: int):
        """Makes the environments; see `EnvironmentConfig.make`.

        Raises:
          ImportError: If MiniGrid is not installed.
          ValueError: For a mission of more than `instruction_length` words. A few missions are
            tried at once; a rarer long mission raises the error later.
        """
        gymnasium = _load_gymnasium()
        self._games = [
            gymnasium.make(task, render_mode="rgb_array", disable_env_checker=True).unwrapped
            for _ in range(num_envs)
        ]
        _silence_rejections()
        self._seeds: list[int | None] = [seed + index for index in range(num_envs)]
        for attempt in range(_TRIED_RESETS):
            observation, _ = self._games[0].reset(seed=seed + attempt)
            instructions.encode(observation["mission"], config.instruction_length)
        super().__init__(
            num_envs,
            action_repeat=config.action_repeat,
            observation={
                "image": observations.image_spec(*observation["image"].shape),
                "text": types.TextSpec(config.instruction_length),
            },
            action=specs.DiscreteArray(int(self._games[0].action_space.n), name="action"),
        )

    def _reset(self) -> dict[str, np.ndarray]:
        self._views, self._texts = (
            np.zeros((self.num_envs, *leaf.shape), leaf.dtype)
            for leaf in (self._observation_spec["image"], self._observation_spec["text"])
        )
        return super()._reset()

    def _start_episode(self, index: int) -> None:
        # Only the first reset is seeded.
        observation, _ = self._games[index].reset(seed=self._seeds[index])
        self._seeds[index] = None
        self._show(index, observation)

    def _take_frame(self, index: int, action: int) -> tuple[float, float, bool]:
        observation, reward, terminated, truncated, _ = self._games[index].step(action)
        self._show(index, observation)
        return reward, 1.0 - terminated, terminated or truncated

    def _show(self, index: int, observation: dict[str, Any]) -> None:
        self._views[index] = observation["image"] * np.array(CODE_SCALES, np.uint8)
        self._texts[index] = instructions.encode(observation["mission"], self._texts.shape[1])

    def _observations(self) -> dict[str, np.ndarray]:
        return {"image": self._views.copy(), "text": self._texts.copy()}

    def render(self, index: int) -> np.ndarray:
        """The whole room, 32 pixels a cell, with the agent's view lighter."""
        return self._games[index].render()

    def close(self) -> None:
        """Closes the games."""
        super().close()
        for game in self._games:
            game.close()


def _silence_rejections() -> None:
    """BabyAI prints a line for each level that it draws again, in the midst of the progress."""
    levels: Any = sys.modules.get("minigrid.envs.babyai.core.roomgrid_level")
    if levels:  # MiniGrid's own tasks do without
        levels.print = lambda *_: None


def _load_gymnasium() -> ModuleType:
    """Gymnasium, with MiniGrid's tasks in its registry."""
    try:
        import minigrid  # noqa: F401 (the import registers the tasks)
    except ModuleNotFoundError as error:
        raise errors.MissingPackageError("MiniGrid is not installed: run make minigrid") from error
    import gymnasium

    return gymnasium
