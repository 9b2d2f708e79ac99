"""An agent's acting as functions of tensors alone: what it remembers is a state that is passed on.

The state is a flat dictionary. It holds what an actor keeps between two steps: the core's state,
the frames that images are stacked from, and the last action. All of it starts again by itself
where `is_first` is true.
"""

from typing import Any, NamedTuple

import tensorflow as tf
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.agents import base
from laser_tf.replay import frame_stacking

_CORE, _FRAMES, _ACTION = "core", "frames", "previous_action"

State = dict[str, tf.Tensor]


class Step(NamedTuple):
    """What an environment says at one step, [B, ...]; see `types.EnvOutput`."""

    observation: Any  # nest, images as single frames
    reward: tf.Tensor  # float32 [B]
    discount: tf.Tensor  # float32 [B]
    is_first: tf.Tensor  # bool [B]


class PortablePolicy:
    """What is saved of an agent."""

    def __init__(self, agent: base.Agent, spec: types.EnvironmentSpec, frame_stack: int):
        """Wraps an agent.

        Args:
          agent: one that was made for evaluations, so that it explores no more than they do.
          spec: of the environment, images as single frames.
          frame_stack: K, frames in the images that the agent sees.

        Raises:
          UserError: if two parts of the observation would have one name in a SavedModel.
        """
        try:
            observations.check_names(spec.observation)
        except ValueError as error:
            raise errors.UserError(str(error)) from None
        self._agent = agent
        self.spec = spec
        self._frame_stack = frame_stack

    @property
    def variables(self) -> tuple[tf.Variable, ...]:
        """What acting reads, and nothing else of the agent."""
        step, state = self.step_signature(), self.state_signature()
        seed = tf.TensorSpec([2], tf.int32)
        trace = tf.function(self.sample, autograph=False)
        return tuple(trace.get_concrete_function(step, state, seed).variables)

    def step_signature(self) -> Step:
        """The `tf.TensorSpec`s of a step, named by their paths; B is not static."""
        return Step(
            _signatures("observation", self.spec.observation),
            tf.TensorSpec([None], tf.float32, "reward"),
            tf.TensorSpec([None], tf.float32, "discount"),
            tf.TensorSpec([None], tf.bool, "is_first"),
        )

    def state_signature(self) -> dict[str, tf.TensorSpec]:
        """The `tf.TensorSpec`s of a state, named `state_<key>`; B is not static."""
        return {
            name: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype, f"state_{name}")
            for name, leaf in self.initial_state(1).items()
        }

    def initial_state(self, batch_size: int | tf.Tensor) -> State:
        """The state before the first step of B environments: zeros."""
        action = self.spec.action
        return {
            **_named(_CORE, self._agent.initial_state(batch_size)),
            **{
                name: tf.zeros([batch_size, *shape], dtype)
                for name, (shape, dtype) in self._histories().items()
            },
            _ACTION: tf.zeros([batch_size, *action.shape], action.dtype),
        }

    def greedy(self, step: Step, state: State) -> tuple[tf.Tensor, State]:
        """The best action, as `launch.evaluate --greedy` takes it, and the next state."""
        unused_seed = tf.zeros([2], tf.int32)  # or the agent's own generator would be saved, too
        output, carried = self._act(step, state, unused_seed)
        return self._after(self._agent.greedy_action(output), carried)

    def sample(self, step: Step, state: State, seed: tf.Tensor) -> tuple[tf.Tensor, State]:
        """An action as `launch.evaluate` draws it, and the next state; `seed` is int32 [2]."""
        output, carried = self._act(step, state, seed)
        return self._after(output.action, carried)

    def _act(self, step: Step, state: State, seed: tf.Tensor) -> tuple[types.AgentOutput, State]:
        """The agent's answer, and the next state without the action."""
        stacked, histories = self._stack(step, state)
        env_output = types.EnvOutput(
            stacked, step.reward, step.discount, step.is_first, state[_ACTION]
        )
        structure = self._agent.initial_state(1)
        core_state = tree.unflatten_as(structure, [state[n] for n in _named(_CORE, structure)])
        output, core_state = self._agent.act(env_output, core_state, seed)
        return output, {**_named(_CORE, core_state), **histories}

    def _after(self, action: tf.Tensor, carried: State) -> tuple[tf.Tensor, State]:
        action = tf.cast(action, self.spec.action.dtype)
        return action, {**carried, _ACTION: action}

    def _stack(self, step: Step, state: State) -> tuple[Any, State]:
        """The observation with stacked images, and the frames to remember."""
        leaves, histories = _named(_FRAMES, step.observation), {}
        for name in self._histories():
            frame = leaves[name]
            leaves[name] = frame_stacking.push_frame(state[name], frame, step.is_first)
            histories[name] = leaves[name][..., frame.shape[-1] :]
        return tree.unflatten_as(step.observation, list(leaves.values())), histories

    def _histories(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Shapes [H, W, (K - 1) * C] and dtypes of the frames to remember, by their names."""
        if self._frame_stack == 1:
            return {}
        return {
            name: ((*leaf.shape[:-1], (self._frame_stack - 1) * leaf.shape[-1]), leaf.dtype)
            for name, leaf in _named(_FRAMES, self.spec.observation).items()
            if observations.is_image(leaf)
        }


def _named(prefix: str, nest: Any) -> dict[str, Any]:
    """The leaves of a nest by their paths, in its order."""
    return {
        observations.path_name(prefix, path): leaf for path, leaf in tree.flatten_with_path(nest)
    }


def _signatures(prefix: str, nest: Any) -> Any:
    """Specs of single environments -> `tf.TensorSpec`s of batches."""

    def batched(path: tuple, leaf: specs.Array) -> tf.TensorSpec:
        return tf.TensorSpec([None, *leaf.shape], leaf.dtype, observations.path_name(prefix, path))

    return tree.map_structure_with_path(batched, nest)
