"""Stands in for `dm_control.suite`: actions move a point on a line."""

import os

import dm_env
import numpy as np
from dm_env import specs

CONTROL_TIMESTEP = 0.01  # seconds
RENDERERS = ("disabled", "egl", "osmesa")
_RENDERER = os.environ.get("MUJOCO_GL", "glfw")  # Chosen at the import, too.


def load(domain_name, task_name, task_kwargs):
    return Environment(**task_kwargs)


class Environment(dm_env.Environment):
    def __init__(self, random, time_limit=1.0):
        self._generator = np.random.RandomState(random)
        self._limit = round(time_limit / CONTROL_TIMESTEP)
        self.physics = Physics()

    def reset(self):
        self._steps = 0
        self.physics.place = self._generator.uniform(-1, 1)
        return dm_env.TimeStep(dm_env.StepType.FIRST, None, None, self._show())

    def step(self, action):
        action = np.asarray(action)
        self.action_spec().validate(action)
        self._steps += 1
        self.physics.place += action[0]
        is_last = self._steps >= self._limit
        return dm_env.TimeStep(
            dm_env.StepType.LAST if is_last else dm_env.StepType.MID, action[0], 1.0, self._show()
        )

    def _show(self):
        place = self.physics.place
        return {"arms": np.full([3, 2], place), "height": place, "steps": np.array([self._steps])}

    def observation_spec(self):
        return {
            "arms": specs.Array([3, 2], np.float64),
            "height": specs.Array([], np.float64),
            "steps": specs.Array([1], np.int64),
        }

    def action_spec(self):
        return specs.BoundedArray([2], np.float64, -1.0, 1.0)


class Physics:
    place = 0.0
    pictures = 0

    def render(self, height, width, camera_id, render_flag_overrides):
        if _RENDERER not in RENDERERS[1:]:
            raise RuntimeError("No OpenGL rendering backend is available.")
        picture = np.zeros([height, width, 3], np.uint8)
        self.pictures += 1
        picture[:, : width // 2] = RENDERERS.index(_RENDERER)
        picture[:, width // 2 :] = self.pictures
        return picture
