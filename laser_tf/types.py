"""What actors, replay, learners and agents hand to each other, and THE time convention.

An unroll has T + 1 rows; in the learner it is time-major, `[T + 1, B, ...]`. Row t holds

    observation      x_t
    reward           that ARRIVED with x_t: the outcome of action a_{t-1} (dm_env's convention)
    discount         that ARRIVED with x_t: 0 where an episode (or a life) ended at x_t, otherwise 1
    is_first         whether x_t opens an episode
    previous_action  a_{t-1}
    action           a_t, taken at x_t
    logits           the behaviour policy mu(.|x_t)
    core_state       the core's state before x_t (row 0 only)

The last row of one unroll is the first row of the next. A loss therefore reads actions [0..T-1],
rewards and discounts [1..T] and values [0..T], with values[T] the bootstrap. A core resets BEFORE
the row whose `is_first` is true.

An episode that ends at x_t (by its own end or by a time limit) is followed by a row t + 1 with
`is_first`; the action a_t was ignored by the environment and `reward[t + 1]` is 0. That step from
x_t to x_{t+1} is no transition: losses mask it (`1 - is_first[1..T]`). A time limit leaves
`discount[t]` at 1, so that V(x_t) bootstraps.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # configurations and environments, which read this file, need no TensorFlow
    import tensorflow as tf

VOCABULARY = 1001  # ids of an instruction's words: from 1 to 1000, and 0 for no word


class EnvironmentSpec(NamedTuple):
    """What an agent must fit."""

    frame_shape: tuple[int, int, int]  # H, W, C of a single frame, uint8
    num_actions: int
    num_tasks: int = 1
    instruction_length: int = 0  # L, words of a text beside the frames; 0: none


class EnvOutput(NamedTuple):
    """What an environment says at one step: arrays of leading shape `[B]` or `[T + 1, B]`.

    In actors these are NumPy arrays holding single frames; agents see them with frames stacked.
    """

    observation: Any  # uint8 [..., H, W, C]
    reward: Any  # float32 [...], raw (never clipped before the loss)
    discount: Any  # float32 [...], 0 or 1: gamma belongs to the agent
    is_first: Any  # bool [...]
    previous_action: Any  # int32 [...]
    instruction: Any = ()  # int32 [..., L], ids of words, 0 after the last; () without a text


class AgentOutput(NamedTuple):
    """What an agent answers at one step: leading shape `[B]` or `[T + 1, B]`."""

    action: Any  # int32 [...]
    logits: Any  # float32 [..., A], the behaviour policy's parameters, or the Q-values it had


class Unroll(NamedTuple):
    """A batch of stored segments of experience, as an agent's loss sees it."""

    env_output: EnvOutput  # [T + 1, B, ...]
    agent_output: AgentOutput  # [T + 1, B, ...]
    core_state: Any  # [B, ...], before row 0
    task: Any  # int32 [B], index of the task; no network sees it
    is_online: Any  # bool [B]: fresh from an actor (True) or drawn from replay (False)
    is_own: Any  # bool [B]: lived by this agent (True) or by another of its sweep (False)
    weight: Any  # float32 [B], importance weight; 1 unless replay is prioritised
    # Of sequences: acting's core states before S + 1 evenly spaced rows, the first and the last row
    # among them, [S + 1, B, ...]; elsewhere ().
    stored_states: Any = ()


class LossOutput(NamedTuple):
    """What an agent's loss returns."""

    loss: "tf.Tensor"  # float32 []
    metrics: dict[str, "tf.Tensor"]  # name -> float32 []
    priorities: "tf.Tensor"  # float32 [B], above 0, for replay that is prioritised
