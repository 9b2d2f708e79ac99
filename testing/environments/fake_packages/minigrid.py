"""Stands in for the package minigrid with the interface of its environments.

A corridor leads to the goal. The mission and the codes of the cells are sampled for each episode.
"""

import gymnasium
import numpy as np

FORWARD = 2
CELLS = 4  # Steps forward to the goal.
COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
LARGEST_CODES = (10, 5, 2)  # Of object, colour and state.


class Corridor(gymnasium.Env):
    """An environment with one mission for all episodes, or one of six if it has {}."""

    metadata = {"render_modes": ["human", "rgb_array"]}

    def __init__(self, mission, max_steps, render_mode=None):
        self._missions = [mission.format(colour) for colour in COLOURS]
        self.max_steps = max_steps
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Discrete(7)
        # As in the real package, the mission has no space of gymnasium.
        self.observation_space = {"image": gymnasium.spaces.Box(0, 255, [7, 7, 3], np.uint8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.step_count, self.position = 0, 0
        self.mission = self._missions[self.np_random.integers(len(self._missions))]
        self._cells = self.np_random.integers(
            0, LARGEST_CODES, size=[7, 7, 3], dtype=np.uint8, endpoint=True
        )
        return self._observe(), {}

    def step(self, action):
        self.step_count += 1
        self.position += action == FORWARD
        arrived = self.position == CELLS
        reward = 1 - 0.9 * (self.step_count / self.max_steps) if arrived else 0
        return self._observe(), reward, bool(arrived), self.step_count >= self.max_steps, {}

    def _observe(self):
        image = self._cells.copy()
        image[self.position, 6] = (10, 0, 3)  # The largest codes of object and state.
        return {"image": image, "direction": 3, "mission": self.mission}

    def render(self):
        """Returns None without a render mode."""
        if self.render_mode != "rgb_array":
            return None
        return np.full([5 * 32, 5 * 32, 3], 50 * self.position, np.uint8)


_TASKS = {
    "MiniGrid-Empty-Random-5x5-v0": {"mission": "get to the green goal square", "max_steps": 100},
    "BabyAI-GoToLocal-v0": {"mission": "go to the {} ball", "max_steps": 64},
    "BabyAI-GoToSeq-v0": {"mission": "go to the {} ball, then go to a box", "max_steps": 64},
}

for _task, _arguments in _TASKS.items():
    gymnasium.registry.pop(_task, None)
    gymnasium.register(_task, entry_point=Corridor, kwargs=_arguments)
