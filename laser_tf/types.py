"""Data types shared by actors, replay, learners and agents, and their time convention.

An unroll has T + 1 time steps. The learner holds it time-major, `[T + 1, B, ...]`. Step t holds

    observation      x_t
    reward           received together with x_t: the outcome of a_{t-1} (as in dm_env)
    discount         received together with x_t: 0 if the episode terminated or a life was
                     lost at x_t, else 1 (also at a time limit)
    is_first         true if x_t is the first observation of an episode
    previous_action  a_{t-1}
    action           a_t, taken at x_t
    policy           parameters of the behaviour policy mu(.|x_t)
    extras           other outputs of the acting agent at x_t that its loss needs
    core_state       recurrent state before x_t (step 0 only)

Consecutive unrolls overlap by one step: the last step of one is the first step of the next. A loss
therefore reads actions [0..T-1], rewards and discounts [1..T] and values [0..T]. The bootstrap
value is values[T]. Index t of a `[T, B]` argument of an op belongs to the transition from x_t to
x_{t+1}. So rewards[t] and discounts[t] of the op are received with x_{t+1}.

The recurrent core resets its state BEFORE each step with `is_first`.

If an episode ends at x_t, by termination or by a time limit, then step t + 1 has `is_first`. The
environment ignores a_t, and `reward[t + 1]` is 0. The pair (x_t, x_{t+1}) is not a transition, and
losses mask it with `1 - is_first[1..T]`. A time limit leaves `discount[t]` at 1, so that returns
bootstrap from V(x_t).

Observations, actions, policy parameters, extras and core states are nests: single arrays, or tuples
and dictionaries of arrays.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from dm_env import specs

if TYPE_CHECKING:  # Configurations and environments run without TensorFlow.
    import tensorflow as tf

VOCABULARY_SIZE = 1001  # word ids: 1 to 1000 for words, 0 for padding


class TextSpec(specs.BoundedArray):
    """Spec of a text: word ids, int32 [L], padded at the end with zeros."""

    def __init__(self, length: int, name: str = "text"):
        """Creates the spec of texts with up to `length` words (L)."""
        super().__init__([length], np.int32, 0, VOCABULARY_SIZE - 1, name)

    def __reduce__(self) -> tuple:
        return TextSpec, (self.shape[0], self.name)


class ProductSpec(specs.BoundedArray):
    """Spec of a vector [D] of independent parts: the values of all parts, one after the other.

    It is int32 if all parts are integers, otherwise float32.

    Attributes:
      parts: Spec of each part: a `DiscreteArray`, which has one entry of the vector, or a vector
        with finite bounds.
      integers: Indices of the K entries that are integers.
      floats: Indices of the D - K other entries.
      num_values: Number of values of each integer.
    """

    def __init__(self, parts: Sequence[specs.BoundedArray], name: str = "action"):
        """Creates the spec of at least one integer and other parts."""
        self.parts = tuple(parts)

        def concatenated(value: Callable[[specs.BoundedArray], Any]) -> np.ndarray:
            arrays = [np.broadcast_to(value(part), part.shape or 1) for part in self.parts]
            return np.concatenate(arrays)

        is_integer = concatenated(lambda part: isinstance(part, specs.DiscreteArray))
        self.integers, self.floats = np.flatnonzero(is_integer), np.flatnonzero(~is_integer)
        super().__init__(
            is_integer.shape,
            np.int32 if is_integer.all() else np.float32,
            concatenated(lambda part: part.minimum),
            concatenated(lambda part: part.maximum),
            name,
        )
        self.num_values = (self.maximum[self.integers].astype(int) + 1).tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProductSpec) and self.parts == other.parts

    def __reduce__(self) -> tuple:
        return ProductSpec, (self.parts, self.name)


class EnvironmentSpec(NamedTuple):
    """Observations, actions and number of tasks that an agent is built for."""

    # Nest of `dm_env.specs.Array`, for one time step of one environment. Networks do not read
    # `observations.ACTION_MASK`, the mask of allowed discrete actions, bool [A].
    observation: Any
    # `DiscreteArray`, float32 [D] with bounds if continuous, or `ProductSpec` of several actions.
    action: specs.BoundedArray
    num_tasks: int = 1


class EnvOutput(NamedTuple):
    """Output of a batch of environments, with leading shape `[B]` or `[T + 1, B]`.

    Actors hold NumPy arrays with single frames. Agents receive images with stacked frames.
    """

    observation: Any  # nest, as in the observation spec
    reward: Any  # float32 [...], unclipped: only losses clip rewards
    discount: Any  # float32 [...], 0 or 1: agents multiply it by gamma
    is_first: Any  # bool [...]
    previous_action: Any  # int32 or float32 [...] or [..., D], as in the action spec


class AgentOutput(NamedTuple):
    """Output of an agent, with leading shape `[B]` or `[T + 1, B]`."""

    action: Any  # int32 or float32 [...] or [..., D], as in the action spec
    policy: Any = ()  # nest: parameters of the distribution that sampled the action
    extras: Any = ()  # nest: stored with the action for use by the loss


class Unroll(NamedTuple):
    """Batch of unrolls as the loss of an agent receives it."""

    env_output: EnvOutput  # [T + 1, B, ...]
    agent_output: AgentOutput  # [T + 1, B, ...]
    core_state: Any  # [B, ...], before step 0
    task: Any  # int32 [B], task index; networks do not receive it
    is_online: Any  # bool [B]: true if fresh from an actor, false if sampled from replay
    is_own: Any  # bool [B]: false if another member of the sweep collected the unroll
    importance_weight: Any  # float32 [B]; 1 unless replay is prioritised
    # Only for sequences, otherwise (): core states stored by the actor before the first step of
    # each of the S joined unrolls and before the last step, [S + 1, B, ...].
    stored_states: Any = ()


class LossOutput(NamedTuple):
    """Output of the loss of an agent.

    With several replicas, each computes the loss of its share of the joint batch. The joint loss is
    the sum over replicas. Metrics are summed likewise, except `ops.joint_batch.Mean`.
    """

    loss: "tf.Tensor"  # float32 []
    metrics: "dict[str, Any]"  # name -> float32 [] or `Mean`
    priorities: "tf.Tensor"  # float32 [B], above 0, for prioritised replay
