"""The LSTM cell of cores and of the instruction encoder.

By hand rather than by Keras: products with inputs are taken for all rows at once, states are reset
within an unroll, and Keras' layer picks a cuDNN kernel, which XLA refuses.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf


class LSTMState(NamedTuple):
    """What a cell carries on."""

    output: tf.Tensor  # float32 [B, H]
    memory: tf.Tensor  # float32 [B, H]


class LSTMCell(tf.Module):
    """Long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000), float32.

    i, f, g, o = x W + h U + b
    c' = sigmoid(f + 1) c + sigmoid(i) tanh(g)
    h' = sigmoid(o) tanh(c')
    """

    def __init__(self, size: int, memory_span: int = 0):
        """Creates the cell.

        Args:
          size: H.
          memory_span: steps that a fresh cell remembers at most, see `_chrono_biases`; 0 starts all
            biases at zero, with which it forgets half of everything in two steps.
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
        """Inputs [..., F] -> their part of the gates [..., 4 H]."""
        return self._input(inputs)

    def step(self, projected: tf.Tensor, state: LSTMState) -> LSTMState:
        """One step from gates' input parts [B, 4 H]."""
        gates = projected + self._recurrent(state.output)
        enter, forget, candidate, leave = tf.split(gates, 4, axis=-1)
        # Plus one: a fresh cell remembers (Gers et al. 2000; Jozefowicz et al. 2015).
        memory = tf.sigmoid(forget + 1.0) * state.memory + tf.sigmoid(enter) * tf.tanh(candidate)
        return LSTMState(tf.sigmoid(leave) * tf.tanh(memory), memory)


def _chrono_biases(memory_span: int) -> Callable[..., tf.Tensor]:
    """Initial biases with which each unit forgets at its own pace (Tallec and Ollivier 2018).

    b_f = log u, b_i = -b_f, u uniform in [1, span - 1]: a unit keeps a share u / (u + 1) in a step.
    """

    def initialize(shape: list[int], dtype: tf.DType) -> tf.Tensor:
        size = shape[0] // 4
        forget = tf.math.log(tf.random.uniform([size], 1.0, memory_span - 1.0, dtype))
        zeros = tf.zeros([size], dtype)
        return tf.concat([-forget, forget - 1.0, zeros, zeros], axis=0)  # `step` adds the one again

    return initialize
