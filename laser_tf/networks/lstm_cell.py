"""The LSTM cell of cores and of the instruction encoder.

By hand rather than by Keras: products with inputs are taken for all rows at once, states are reset
within an unroll, and Keras' layer picks a cuDNN kernel, which XLA refuses.
"""

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

    def __init__(self, size: int):
        super().__init__()
        self._input = tf.keras.layers.Dense(4 * size, dtype="float32")
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
