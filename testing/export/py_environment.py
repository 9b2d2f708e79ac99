"""One game of an example as a TF-Agents environment."""

import numpy as np
import tree
from dm_env import specs
from tf_agents.environments import py_environment
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts

from laser_tf import types
from laser_tf.environments import catch, tmaze
from testing.export import continuous_game, policies


class SingleEnvironment(py_environment.PyEnvironment):
    """Remembers every row that it returned."""

    def __init__(self, example: policies.Example):
        super().__init__()
        batch = example.environment
        if isinstance(batch, continuous_game.ContinuousGame):
            self._game = continuous_game.ContinuousGame(1, seed=4)
        elif isinstance(batch, catch.Catch):
            self._game = catch.CatchConfig().make("catch", 1, 4, False)
        else:
            self._game = tmaze.TMazeConfig(corridor_length=3).make("tmaze", 1, 4, False)
        self._started = False
        self.rows, self.expected = [], []

    def observation_spec(self):
        return tree.map_structure(_array_spec, self._game.observation_spec())

    def action_spec(self):
        return _array_spec(self._game.action_spec())

    def _reset(self):
        # A game that is over starts anew at its next step, whatever the action.
        idle = np.broadcast_to(
            self._game.action_spec().minimum, (1, *self._game.action_spec().shape)
        )
        row = self._game.step(idle) if self._started else self._game.reset()
        self._started = True
        return ts.restart(self._seen(row))

    def _step(self, action):
        row = self._game.step(np.asarray(action)[None])
        observation, reward = self._seen(row), row.reward[0]
        if row.is_first[0]:  # after a time limit
            return ts.restart(observation)
        if row.discount[0] == 0:
            return ts.termination(observation, reward)
        return ts.transition(observation, reward)

    def _seen(self, row: types.EnvOutput):
        self.rows.append(row)
        return tree.map_structure(lambda leaf: leaf[0], row.observation)


def _array_spec(spec: specs.Array) -> array_spec.ArraySpec:
    if isinstance(spec, specs.BoundedArray):
        return array_spec.BoundedArraySpec(
            spec.shape, spec.dtype, spec.minimum, spec.maximum, spec.name
        )
    return array_spec.ArraySpec(spec.shape, spec.dtype, spec.name)
