"""An agent's policy as functions of tensors: its memory is a state that the caller passes on.

The state is a flat dictionary of what an actor keeps between two steps: the core's state, the
frames that images are stacked from, and the last action. It resets itself where `is_first` is true.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tree
from dm_env import specs

from laser_tf import observations, types
from laser_tf.agents import base
from laser_tf.replay import frame_stacking

_CORE, _FRAMES, _ACTION = "core", "frames", "previous_action"

State = dict[str, tf.Tensor]


class PortablePolicy:
    """The functions of an agent, with the exploration of evaluations, that an export saves.

    A step is `observation` (a nest with images as single frames), `reward` float32 [B], `discount`
    float32 [B] and `is_first` bool [B]; see `types.EnvOutput`.
    """

    def __init__(self, agent: base.Agent, spec: types.EnvironmentSpec, frame_stack: int):
        """Wraps an agent that receives K = `frame_stack` frames; the spec has single frames.

        Raises ConfigError if parts of the observation cannot be named in a SavedModel.
        """
        observations.check_names(spec.observation)
        self._agent = agent
        self.spec = spec
        self._frame_stack = frame_stack

    @property
    def variables(self) -> tuple[tf.Variable, ...]:
        """The agent's variables that acting reads."""
        seed = tf.TensorSpec([2], tf.int32)
        trace = tf.function(self.sample, autograph=False)
        signature = (*self.step_signature(), self.state_signature(), seed)
        return tuple(trace.get_concrete_function(*signature).variables)

    def step_signature(self) -> tuple[Any, tf.TensorSpec, tf.TensorSpec, tf.TensorSpec]:
        """Returns the `tf.TensorSpec`s of a step, named by their paths; B is not static."""

        def batch(path: tuple, leaf: specs.Array) -> tf.TensorSpec:
            name = observations.path_name("observation", path)
            return tf.TensorSpec([None, *leaf.shape], leaf.dtype, name)

        return (
            tree.map_structure_with_path(batch, self.spec.observation),
            tf.TensorSpec([None], tf.float32, "reward"),
            tf.TensorSpec([None], tf.float32, "discount"),
            tf.TensorSpec([None], tf.bool, "is_first"),
        )

    def state_signature(self) -> dict[str, tf.TensorSpec]:
        """Returns the `tf.TensorSpec`s of a state, named `state_<key>`; B is not static."""
        return {
            name: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype, f"state_{name}")
            for name, leaf in self.initial_state(1).items()
        }

    def initial_state(self, batch_size: int | tf.Tensor) -> State:
        """Returns the state before the first step of B environments: zeros."""
        action = self.spec.action
        state = _named(_CORE, self._agent.initial_state(batch_size))
        for name, (shape, dtype) in self._histories().items():
            state[name] = tf.zeros([batch_size, *shape], dtype)
        state[_ACTION] = tf.zeros([batch_size, *action.shape], action.dtype)
        return state

    def greedy(
        self,
        observation: Any,
        reward: tf.Tensor,
        discount: tf.Tensor,
        is_first: tf.Tensor,
        state: State,
    ) -> tuple[tf.Tensor, State]:
        """Returns the best action, as `launch.evaluate --greedy` takes it, and the next state."""
        unused_seed = tf.zeros([2], tf.int32)  # Otherwise the agent's generator is saved as well.
        step = observation, reward, discount, is_first
        output, carried = self._act(step, state, unused_seed)
        return self._with_action(self._agent.greedy_action(output), carried)

    def sample(
        self,
        observation: Any,
        reward: tf.Tensor,
        discount: tf.Tensor,
        is_first: tf.Tensor,
        state: State,
        seed: tf.Tensor,
    ) -> tuple[tf.Tensor, State]:
        """Returns an action as `launch.evaluate` samples it, and the next state; seed int32 [2]."""
        step = observation, reward, discount, is_first
        output, carried = self._act(step, state, seed)
        return self._with_action(output.action, carried)

    def _act(
        self, step: tuple[Any, tf.Tensor, tf.Tensor, tf.Tensor], state: State, seed: tf.Tensor
    ) -> tuple[types.AgentOutput, State]:
        """Returns the agent's output, and the next state without the action."""
        observation, reward, discount, is_first = step
        leaves, frames = _named(_FRAMES, observation), {}
        for name in self._histories():
            depth = leaves[name].shape[-1]
            leaves[name] = frame_stacking.push_frame(state[name], leaves[name], is_first)
            frames[name] = leaves[name][..., depth:]
        stacked = tree.unflatten_as(observation, list(leaves.values()))
        env_output = types.EnvOutput(stacked, reward, discount, is_first, state[_ACTION])
        structure = self._agent.initial_state(1)
        core_state = tree.unflatten_as(structure, [state[n] for n in _named(_CORE, structure)])
        output, core_state = self._agent.act(env_output, core_state, seed)
        return output, {**_named(_CORE, core_state), **frames}

    def _with_action(self, action: tf.Tensor, carried: State) -> tuple[tf.Tensor, State]:
        action = tf.cast(action, self.spec.action.dtype)
        return action, {**carried, _ACTION: action}

    def _histories(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Returns shapes [H, W, (K - 1) * C] and dtypes of the frames to keep, by name."""
        if self._frame_stack == 1:
            return {}
        return {
            name: ((*leaf.shape[:-1], (self._frame_stack - 1) * leaf.shape[-1]), leaf.dtype)
            for name, leaf in _named(_FRAMES, self.spec.observation).items()
            if observations.is_image(leaf)
        }


def with_named_tensors(
    function: Callable, signature: list[Any], state_prefix: str = "state_"
) -> tf.types.experimental.GenericFunction:
    """Returns a policy's function for servers and other formats: named tensors in and out.

    The function returns a state, or an action and a state. The names of the `tf.TensorSpec`s in its
    signature become the inputs; names of the returned state begin with `state_prefix`.
    """

    def call(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        result = function(*tf.nest.pack_sequence_as(signature, tensors))
        *action, state = result if isinstance(result, tuple) else (result,)
        outputs = {f"{state_prefix}{name}": tensor for name, tensor in state.items()}
        return outputs | ({"action": action[0]} if action else {})

    return tf.function(call, input_signature=tf.nest.flatten(signature), autograph=False)


def _named(prefix: str, nest: Any) -> dict[str, Any]:
    """Returns the leaves of a nest by their paths, in its order."""
    return {
        observations.path_name(prefix, path): leaf for path, leaf in tree.flatten_with_path(nest)
    }
