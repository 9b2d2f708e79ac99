"""MiniGrid and BabyAI (Chevalier-Boisvert et al. 2019, 2023): grids with text instructions."""

import dataclasses
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

import dm_env
import numpy as np

from laser_tf import config_checks, config_values, errors
from laser_tf.environments import python_config

# Factors of the codes of object (up to 10), colour (up to 5) and state (up to 3) of a cell. A torso
# divides by 255, so the small codes of MiniGrid would hardly differ.
CODE_SCALES = (20, 40, 80)
_PREFIXES = ("MiniGrid-", "BabyAI-")
_MAX_CHARACTERS = 10_000  # Of a mission.


@dataclasses.dataclass(frozen=True, kw_only=True)
class MiniGridConfig(python_config.WorkerConfig):
    """Configuration of MiniGrid's and BabyAI's tasks."""

    suite: str = "minigrid"
    task: str = "BabyAI-GoToLocal-v0"
    max_frames_per_episode: int = 108_000  # env frames; limit that truncates an episode
    instruction_length: int = 16  # words; of the longest mission

    example_task: ClassVar[str] = "MiniGrid-...-v0"

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "instruction_length", 1, 10_000)

    def check_task(self, task: str) -> str:
        """Checks a name against those that MiniGrid registers."""
        known = [name for name in _load_gymnasium().registry if name.startswith(_PREFIXES)]
        return config_values.check_name("task of minigrid", task, known, self.example_task)

    def max_words(self) -> int:
        """See `WorkerConfig`."""
        return self.instruction_length

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `WorkerConfig`."""
        return functools.partial(create, task)


def create(task: str, seed: int) -> dm_env.Environment:
    """Creates an environment, in a worker.

    Its `image` shows the cells in front of the agent, uint8 [7, 7, 3] in most tasks: MiniGrid's
    codes of object, colour and state times `CODE_SCALES`. Its `text` is the mission. The direction
    of the agent is left out, because the view turns with the agent. The reward is 1 - 0.9 * (steps
    / max steps of the task) at success, otherwise 0.
    """
    gymnasium = _load_gymnasium()
    from laser_tf.environments import gymnasium_adapter

    environment = gymnasium.make(task, render_mode="rgb_array", disable_env_checker=True).unwrapped
    space = gymnasium.spaces.Dict(
        image=environment.observation_space["image"], text=gymnasium.spaces.Text(_MAX_CHARACTERS)
    )
    levels: Any = sys.modules.get("minigrid.envs.babyai.core.roomgrid_level")
    if levels:  # BabyAI prints a line for each level that it samples again.
        levels.print = lambda *_: None
    shown = gymnasium.wrappers.TransformObservation(environment, _show, space)
    return gymnasium_adapter.Gymnasium(shown, seed)


def _show(observation: dict[str, Any]) -> dict[str, Any]:
    image = observation["image"] * np.array(CODE_SCALES, np.uint8)
    return {"image": image, "text": observation["mission"]}


def _load_gymnasium() -> ModuleType:
    """Returns gymnasium with MiniGrid's tasks in its registry."""
    try:
        import minigrid  # noqa: F401 (the import registers the tasks)
    except ModuleNotFoundError as error:
        raise errors.MissingPackageError("MiniGrid is not installed: run make minigrid") from error
    import gymnasium

    return gymnasium
