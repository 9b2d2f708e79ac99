"""LSTM cell that projects the inputs of all time steps at once and resets states in an unroll.

Keras' layer would select a cuDNN kernel, which XLA rejects.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf


class LSTMState(NamedTuple):
    """Recurrent state of an LSTM cell."""

    output: tf.Tensor  # h, float32 [B, H]
    memory: tf.Tensor  # c, float32 [B, H]


class LSTMCell(tf.Module):
    """Long short-term memory in float32 (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    i, f, g, o = x W + h U + b
    c' = sigmoid(f + 1) c + sigmoid(i) tanh(g)
    h' = sigmoid(o) tanh(c')
    """

    def __init__(self, size: int, memory_span: int = 0):
        """Creates the cell of H = `size` units.

        `memory_span` is the max number of steps that a fresh cell remembers, see `_chrono_biases`.
        With 0 all biases are zero, and the cell forgets half of its memory in two steps.
        """
        super().__init__()
        self._input = tf.keras.layers.Dense(
            4 * size,
            bias_initializer=_chrono_biases(memory_span) if memory_span else "zeros",
            dtype="float32",
        )
        self._recurrent = tf.keras.layers.Dense(
            4 * size, use_bias=False, kernel_initializer="orthogonal", dtype="float32"
        )

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """Computes the input part of the gates, [..., 4 H], from inputs [..., F]."""
        return self._input(inputs)

    def step(self, projected: tf.Tensor, state: LSTMState) -> LSTMState:
        """Advances the state by one step, given the input part of the gates, [B, 4 H]."""
        gates = projected + self._recurrent(state.output)
        input_gate, forget_gate, candidate, output_gate = tf.split(gates, 4, axis=-1)
        # Adding 1 makes a fresh cell remember (Gers et al. 2000; Jozefowicz et al. 2015).
        kept = tf.sigmoid(forget_gate + 1.0) * state.memory
        memory = kept + tf.sigmoid(input_gate) * tf.tanh(candidate)
        return LSTMState(tf.sigmoid(output_gate) * tf.tanh(memory), memory)


def _chrono_biases(memory_span: int) -> Callable[..., tf.Tensor]:
    """Returns an initialiser that spreads the units' forgetting rates (Tallec and Ollivier 2018).

    b_f = log u, b_i = -b_f, with u uniform in [1, span - 1]. A unit keeps the fraction
    u / (u + 1) of its memory in each step.
    """

    def initialize(shape: list[int], dtype: tf.DType) -> tf.Tensor:
        size = shape[0] // 4
        forget = tf.math.log(tf.random.uniform([size], 1.0, memory_span - 1.0, dtype))
        zeros = tf.zeros([size], dtype)
        # `LSTMCell.step` adds the 1 that is subtracted here.
        return tf.concat([-forget, forget - 1.0, zeros, zeros], axis=0)

    return initialize
