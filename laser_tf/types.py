"""What actors, replay, learners and agents hand to each other, and THE time convention.

An unroll has T + 1 time steps; in the learner it is time-major, `[T + 1, B, ...]`. Step t holds

    observation      x_t
    reward           that ARRIVED with x_t: the outcome of action a_{t-1} (dm_env's convention)
    discount         that ARRIVED with x_t: 0 where an episode (or a life) ended at x_t, otherwise 1
    is_first         whether x_t opens an episode
    previous_action  a_{t-1}
    action           a_t, taken at x_t
    policy           parameters of the behaviour policy mu(.|x_t)
    extras           what else the agent's loss will need of the moment that it acted
    core_state       the core's state before x_t (step 0 only)

The last step of one unroll is the first step of the next. A loss therefore reads actions [0..T-1],
rewards and discounts [1..T] and values [0..T], with values[T] the bootstrap. A core resets BEFORE
the step whose `is_first` is true.

An episode that ends at x_t (by its own end or by a time limit) is followed by a step t + 1 with
`is_first`; the action a_t was ignored by the environment and `reward[t + 1]` is 0. What lies
between x_t and x_{t+1} is no transition: losses mask it (`1 - is_first[1..T]`). A time limit leaves
`discount[t]` at 1, so that V(x_t) bootstraps.

Observations, actions, policy parameters, extras and core states are nests: an array, or tuples and
dictionaries of them.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from dm_env import specs

if TYPE_CHECKING:  # configurations and environments need no TensorFlow
    import tensorflow as tf

VOCABULARY = 1001  # ids of a text's words: from 1 to 1000, and 0 for no word


class TextSpec(specs.BoundedArray):
    """A text: ids of words, int32 [L], from 1 on, then 0 for no word."""

    def __init__(self, length: int, name: str = "text"):
        """Takes `length`, L: the words of the longest text."""
        super().__init__([length], np.int32, 0, VOCABULARY - 1, name)

    def __reduce__(self) -> tuple:
        return TextSpec, (self.shape[0], self.name)


class EnvironmentSpec(NamedTuple):
    """What an agent must fit."""

    observation: Any  # nest of `dm_env.specs.Array`s, of one time step of one environment
    action: specs.BoundedArray  # a `DiscreteArray`, or continuous: float32 [D] with bounds
    num_tasks: int = 1


class EnvOutput(NamedTuple):
    """What an environment says at one step: arrays of leading shape `[B]` or `[T + 1, B]`.

    In actors these are NumPy arrays holding single frames; agents see images with frames stacked.
    """

    observation: Any  # nest, as the environment's observation spec
    reward: Any  # float32 [...], raw (never clipped before the loss)
    discount: Any  # float32 [...], 0 or 1: gamma belongs to the agent
    is_first: Any  # bool [...]
    previous_action: Any  # int32 [...] or float32 [..., D], as the action spec


class AgentOutput(NamedTuple):
    """What an agent answers at one step: leading shape `[B]` or `[T + 1, B]`."""

    action: Any  # int32 [...] or float32 [..., D]: what the environment is sent
    policy: Any = ()  # nest: parameters of the distribution that the action was drawn from
    extras: Any = ()  # nest: stored for the loss beside them


class Unroll(NamedTuple):
    """A batch of stored segments of experience, as an agent's loss sees it."""

    env_output: EnvOutput  # [T + 1, B, ...]
    agent_output: AgentOutput  # [T + 1, B, ...]
    core_state: Any  # [B, ...], before step 0
    task: Any  # int32 [B], index of the task; no network sees it
    is_online: Any  # bool [B]: fresh from an actor (True) or drawn from replay (False)
    is_own: Any  # bool [B]: lived by this agent (True) or by another of its sweep (False)
    importance_weight: Any  # float32 [B]; 1 unless replay is prioritised
    # Of sequences: acting's core states before S + 1 evenly spaced steps, the first and the last
    # among them, [S + 1, B, ...]; elsewhere ().
    stored_states: Any = ()


class LossOutput(NamedTuple):
    """What an agent's loss returns.

    Of several learners each holds a share of the joint batch: the joint loss is the sum of theirs,
    and so is each metric that is no `ops.joint_batch.Mean`.
    """

    loss: "tf.Tensor"  # float32 []
    metrics: "dict[str, Any]"  # name -> float32 [], or a `Mean`
    priorities: "tf.Tensor"  # float32 [B], above 0, for replay that is prioritised
