"""Writes a policy as a SavedModel that TensorFlow alone loads, and TF-Agents, too."""

import contextlib
import io
import logging
import pathlib
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType

import tensorflow as tf

from laser_tf import errors
from laser_tf.export import portable_policy

_BATCH_SIZE = tf.TensorSpec([], tf.int32, "batch_size")
_SEED = tf.TensorSpec([2], tf.int32, "seed")


def save(policy: portable_policy.PortablePolicy, folder: pathlib.Path, train_step: int) -> None:
    """Writes the model: TF-Agents' functions and signatures, with ours beside them.

    Args:
      policy: to be saved.
      folder: a new one.
      train_step: learner updates behind the weights.

    Raises:
      UserError: without TF-Agents; the message says what to install.
      OSError, tf.errors.OpError: if it cannot be written.
    """
    with _quiet():
        saver = _tf_agents_policy().make_saver(policy, train_step)
        for name, function in _functions(policy).items():
            saver.register_concrete_function(name, function)
        saver.signatures.update(_signatures(policy))
        saver.save(str(folder))


def _tf_agents_policy() -> ModuleType:
    # Not at the top: TF-Agents takes seconds to import.
    try:
        from laser_tf.export import tf_agents_policy
    except ModuleNotFoundError as error:
        package = error.name.split(".")[0]
        raise errors.UserError(
            f"an export needs the package {package!r}: pip install --no-deps tf-agents==0.19.0 "
            "gin-config==0.5.0 gym==0.23.0 gym-notices==0.1.0"
        ) from None
    return tf_agents_policy


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences gym's banner, TF-Agents' syntax, and what it cannot save of distributions."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _functions(policy: portable_policy.PortablePolicy) -> dict[str, Callable]:
    """What Python calls: nests in, nests out."""
    step, state = policy.step_signature(), policy.state_signature()

    def initial_state(batch_size: tf.Tensor) -> portable_policy.State:
        return policy.initial_state(batch_size)

    # With named arguments, as they are the names that a loaded model has, too.
    def greedy(observation, reward, discount, is_first, state):  # noqa: ANN001, ANN202
        step = portable_policy.Step(observation, reward, discount, is_first)
        return policy.greedy(step, state)

    def sample(observation, reward, discount, is_first, state, seed):  # noqa: ANN001, ANN202
        step = portable_policy.Step(observation, reward, discount, is_first)
        return policy.sample(step, state, seed)

    return {
        "initial_state": _compiled(initial_state, [_BATCH_SIZE]),
        "greedy": _compiled(greedy, [*step, state]),
        "sample": _compiled(sample, [*step, state, _SEED]),
    }


def _signatures(policy: portable_policy.PortablePolicy) -> dict[str, Callable]:
    """What a server calls: named tensors in, named tensors out."""
    step, state = policy.step_signature(), policy.state_signature()

    def initial_state(batch_size: tf.Tensor) -> dict[str, tf.Tensor]:
        return _prefixed(policy.initial_state(batch_size))

    return {
        "initial_state": _compiled(initial_state, [_BATCH_SIZE]),
        "greedy": _flat(policy.greedy, (step, state)),
        "sample": _flat(policy.sample, (step, state, _SEED)),
    }


def _flat(function: Callable, signature: tuple) -> Callable:
    """A policy's function with named tensors in the place of nests."""

    def call(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        action, state = function(*tf.nest.pack_sequence_as(signature, tensors))
        return {"action": action, **_prefixed(state)}

    return _compiled(call, tf.nest.flatten(signature))


def _prefixed(state: portable_policy.State) -> dict[str, tf.Tensor]:
    return {f"state_{name}": tensor for name, tensor in state.items()}


def _compiled(function: Callable, signature: list) -> Callable:
    return tf.function(function, input_signature=signature, autograph=False)
