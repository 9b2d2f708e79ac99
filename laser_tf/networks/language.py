"""Encodes text instructions with an LSTM over word embeddings (IMPALA, figure 3)."""

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import lstm_cell

EMBEDDING_SIZE, UNITS = 20, 64


class InstructionEncoder(tf.Module):
    """Runs an LSTM over word embeddings and returns its output at the last word."""

    def __init__(self):
        super().__init__()
        self._embedding = tf.Variable(
            tf.keras.initializers.RandomNormal(stddev=1.0)([types.VOCABULARY_SIZE, EMBEDDING_SIZE]),
            name="embedding",
        )
        self._cell = lstm_cell.LSTMCell(UNITS)

    def __call__(self, instruction: tf.Tensor) -> tf.Tensor:
        """Encodes instructions as float32 [N, 64]; an empty instruction gives zeros.

        Args:
          instruction: Word ids (1 or more) padded with 0, int32 [N, L]; L is static. The amount of
            padding does not change the encoding.
        """
        # The input projection is computed once per vocabulary entry instead of for all N * L words.
        gates = tf.gather(self._cell.project(self._embedding), tf.transpose(instruction))
        is_word = tf.transpose(instruction > 0)[..., None]
        zeros = tf.zeros([tf.shape(instruction)[0], UNITS])
        state = lstm_cell.LSTMState(zeros, zeros)
        # The Python loop unrolls the graph, since L is static and small. Padding keeps the state.
        for position in range(instruction.shape[1]):
            next_state = self._cell.step(gates[position], state)
            state = lstm_cell.LSTMState(
                *(
                    tf.where(is_word[position], new, old)
                    for new, old in zip(next_state, state, strict=True)
                )
            )
        return state.output
