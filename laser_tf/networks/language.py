"""The instruction encoder of language tasks (IMPALA: "an LSTM with text embeddings as input")."""

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import lstm_cell

EMBEDDING_SIZE, UNITS = 20, 64


class InstructionEncoder(tf.Module):
    """Embeds words and runs an LSTM over them; its output at the last word is the encoding."""

    def __init__(self):
        super().__init__()
        self._embedding = tf.Variable(
            tf.keras.initializers.RandomNormal(stddev=1.0)([types.VOCABULARY, EMBEDDING_SIZE]),
            name="embedding",
        )
        self._cell = lstm_cell.LSTMCell(UNITS)

    def __call__(self, instruction: tf.Tensor) -> tf.Tensor:
        """Encodes instructions; how far they are padded makes no difference.

        Args:
          instruction: int32 [N, L], ids of words from 1 on, then 0; L is static.

        Returns:
          float32 [N, 64]; zeros for an instruction without words.
        """
        # The words' share of the gates, once for the vocabulary rather than for all N L words.
        gates = tf.gather(self._cell.project(self._embedding), tf.transpose(instruction))
        is_word = tf.transpose(instruction > 0)[..., None]
        zeros = tf.zeros([tf.shape(instruction)[0], UNITS])
        state = lstm_cell.LSTMState(zeros, zeros)
        # Unrolled: L is static and small. Padding leaves the state as it is.
        for position in range(instruction.shape[1]):
            following = self._cell.step(gates[position], state)
            state = lstm_cell.LSTMState(
                *(
                    tf.where(is_word[position], new, old)
                    for new, old in zip(following, state, strict=True)
                )
            )
        return state.output
