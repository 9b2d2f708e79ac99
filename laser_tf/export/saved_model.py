"""Writes a policy as a SavedModel in the layout of TF-Agents' PolicySaver, with TensorFlow alone.

TF-Agents' loader calls `action`, `get_initial_state` and `get_train_step`, and reads specs from
`policy_specs.pbtxt`. A SavedModel stores a named tuple as its name and its fields, so the named
tuples of this module are loaded like TF-Agents' own.
"""

import pathlib
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
import tree
from dm_env import specs
from tensorflow.python.framework import tensor_spec
from tensorflow.python.saved_model import nested_structure_coder

from laser_tf.export import portable_policy

_FIRST = 0  # Value of step_type.


class TimeStep(NamedTuple):
    """A step of environments, as `tf_agents.trajectories.time_step` has it."""

    step_type: Any
    reward: Any
    discount: Any
    observation: Any


class PolicyStep(NamedTuple):
    """An action and the next state, as `tf_agents.trajectories.policy_step` has them."""

    action: Any
    state: Any
    info: Any


class Trajectory(NamedTuple):
    """Specs of a policy's data, as `tf_agents.trajectories.trajectory` has them."""

    step_type: Any
    observation: Any
    action: Any
    policy_info: Any
    next_step_type: Any
    reward: Any
    discount: Any


def write(policy: portable_policy.PortablePolicy, folder: pathlib.Path, train_step: int) -> None:
    """Writes a SavedModel with the functions and signatures of TF-Agents and of this project.

    Raises OSError or tf.errors.OpError if the model cannot be written.
    """
    model = tf.Module()
    model.model_variables = policy.variables
    model.train_step = tf.Variable(train_step, dtype=tf.int64, trainable=False)
    model.get_train_step = tf.function(lambda: model.train_step, input_signature=[])
    model.get_metadata = tf.function(lambda: {"learner_updates": model.train_step}, [])
    signatures = {}
    for name, (function, signature) in _functions(policy).items():
        setattr(model, name, _compile(function, signature))
        signatures[name] = portable_policy.with_named_tensors(function, signature)
    _add_tf_agents(model, signatures, policy)
    tf.saved_model.save(model, str(folder), signatures)
    described = nested_structure_coder.encode_structure(_policy_specs(policy))
    (folder / "policy_specs.pbtxt").write_text(str(described))


def compiled(policy: portable_policy.PortablePolicy) -> types.SimpleNamespace:
    """Returns the functions of a policy that a SavedModel has, under their names."""
    functions = _functions(policy).items()
    return types.SimpleNamespace(**{name: _compile(*function) for name, function in functions})


def _functions(policy: portable_policy.PortablePolicy) -> dict[str, tuple[Callable, list]]:
    """Returns name -> function and signature."""
    acting = [*policy.step_signature(), policy.state_signature()]
    return {
        "initial_state": (policy.initial_state, [tf.TensorSpec([], tf.int32, "batch_size")]),
        "greedy": (policy.greedy, acting),
        "sample": (policy.sample, [*acting, tf.TensorSpec([2], tf.int32, "seed")]),
    }


def _compile(function: Callable, signature: list) -> Callable:
    return tf.function(function, input_signature=signature, autograph=False)


def _add_tf_agents(
    model: tf.Module, signatures: dict[str, Callable], policy: portable_policy.PortablePolicy
) -> None:
    """Adds the functions that TF-Agents calls, and its signatures for servers."""

    def action(time_step: TimeStep, policy_state: portable_policy.State) -> PolicyStep:
        is_first = time_step.step_type == _FIRST
        step = time_step.observation, time_step.reward, time_step.discount, is_first
        return PolicyStep(*policy.greedy(*step, policy_state), info=())

    observation, reward, discount, _ = policy.step_signature()
    step_type = tf.TensorSpec([None], tf.int32, "step_type")
    arguments = [TimeStep(step_type, reward, discount, observation), policy.state_signature()]
    size = [tf.TensorSpec([], tf.int32, "batch_size")]
    model.action = _compile(action, arguments)
    model.get_initial_state = _compile(policy.initial_state, size)
    inputs = [
        tf.TensorSpec(spec.shape, spec.dtype, "/".join(map(str, path)))
        for path, spec in tree.flatten_with_path(arguments)
    ]

    def flat_action(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        step = action(*tf.nest.pack_sequence_as(arguments, tensors))
        states = {f"state/{name}": tensor for name, tensor in step.state.items()}
        return {"action": step.action, **states}

    signatures["action"] = _compile(flat_action, inputs)
    signatures["get_initial_state"] = model.get_initial_state


def _policy_specs(policy: portable_policy.PortablePolicy) -> dict[str, Any]:
    """Returns the content of `policy_specs.pbtxt`: specs without the batch dimension."""
    step_type = tf.TensorSpec([], tf.int32, "step_type")
    return {
        "collect_data_spec": Trajectory(
            step_type=step_type,
            observation=tree.map_structure(_tensor_spec, policy.spec.observation),
            action=_tensor_spec(policy.spec.action),
            policy_info=(),
            next_step_type=step_type,
            reward=tf.TensorSpec([], tf.float32, "reward"),
            discount=tensor_spec.BoundedTensorSpec([], tf.float32, 0.0, 1.0, "discount"),
        ),
        "policy_state_spec": {
            name: tf.TensorSpec(signature.shape[1:], signature.dtype, name)
            for name, signature in policy.state_signature().items()
        },
    }


def _tensor_spec(spec: specs.Array) -> tf.TensorSpec:
    if isinstance(spec, specs.BoundedArray):
        return tensor_spec.BoundedTensorSpec(
            spec.shape, spec.dtype, spec.minimum, spec.maximum, spec.name
        )
    return tf.TensorSpec(spec.shape, spec.dtype, spec.name)
