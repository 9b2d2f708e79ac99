"""Cores: recurrent memory between a torso and its heads.

A core maps features [R, B, F] and, where it is told, the last actions and the last rewards to
outputs [R, B, H], and carries a state from row to row. The state is zero BEFORE a row whose
`is_first` is true.

All products with inputs are taken for all rows at once; only the recurrent products remain in the
loop over rows. Everything is float32.
"""

from collections.abc import Callable

import tensorflow as tf

from laser_tf.networks import lstm_cell


class _Core(tf.Module):
    """The loop over rows; subclasses say what is computed before it and in a step of it."""

    def __init__(self, size: int):
        super().__init__()
        self._size = size

    def initial_state(self, batch_size: int) -> lstm_cell.LSTMState:
        """Zeros."""
        return lstm_cell.LSTMState(
            tf.zeros([batch_size, self._size]), tf.zeros([batch_size, self._size])
        )

    def __call__(
        self,
        features: tf.Tensor,
        previous_action: tf.Tensor | None,
        reward: tf.Tensor | None,
        is_first: tf.Tensor,
        state: lstm_cell.LSTMState,
    ) -> tuple[tf.Tensor, lstm_cell.LSTMState]:
        """Unrolls the core.

        Args:
          features: [R, B, F].
          previous_action: one-hot float32 [R, B, A]; not read where an episode begins. None: the
            core is not told (a preco_lstm must be).
          reward: float32 [R, B], that arrived with the row; None: the core is not told.
          is_first: bool [R, B].
          state: before row 0.

        Returns:
          Outputs float32 [R, B, H] and the state after the last row.
        """
        keep = tf.cast(~is_first, tf.float32)[..., None]
        observed = tf.cast(features, tf.float32)
        if reward is not None:
            observed = tf.concat([observed, reward[..., None]], axis=-1)
        if previous_action is not None:
            previous_action = keep * previous_action
        projected = self._project(observed, previous_action)
        state = lstm_cell.LSTMState(*state)
        if features.shape[0] == 1:  # acting: a loop would cost more than the step
            state = self._step([part[0] for part in projected], keep[0], state)
            return state.output[None], state
        return self._loop(projected, keep, state)

    def _loop(
        self, projected: list[tf.Tensor], keep: tf.Tensor, state: lstm_cell.LSTMState
    ) -> tuple[tf.Tensor, lstm_cell.LSTMState]:
        rows = keep.shape[0]
        outputs = tf.TensorArray(tf.float32, rows, element_shape=state.output.shape)

        def body(row: tf.Tensor, state: lstm_cell.LSTMState, outputs: tf.TensorArray) -> tuple:
            state = self._step([part[row] for part in projected], keep[row], state)
            return row + 1, state, outputs.write(row, state.output)

        _, state, outputs = tf.while_loop(
            lambda row, *_: row < rows, body, (0, state, outputs), maximum_iterations=rows
        )
        return outputs.stack(), state

    def _project(self, observed: tf.Tensor, previous_action: tf.Tensor | None) -> list[tf.Tensor]:
        raise NotImplementedError

    def _step(
        self, projected: list[tf.Tensor], keep: tf.Tensor, state: lstm_cell.LSTMState
    ) -> lstm_cell.LSTMState:
        raise NotImplementedError


class LSTMCore(_Core):
    """An LSTM over torso, last reward and last action (IMPALA, figure 3)."""

    def __init__(self, size: int, memory_span: int):
        super().__init__(size)
        self._cell = lstm_cell.LSTMCell(size, memory_span)

    def _project(self, observed: tf.Tensor, previous_action: tf.Tensor | None) -> list[tf.Tensor]:
        if previous_action is not None:
            observed = tf.concat([observed, previous_action], axis=-1)
        return [self._cell.project(observed)]

    def _step(
        self, projected: list[tf.Tensor], keep: tf.Tensor, state: lstm_cell.LSTMState
    ) -> lstm_cell.LSTMState:
        state = lstm_cell.LSTMState(*(keep * part for part in state))
        return self._cell.step(projected[0], state)


class PreCoLSTMCore(_Core):
    """Two LSTM cells over one state (Amos et al. 2018, "Learning Awareness Models").

    The predictor advances the state from the action alone, the corrector then updates it from what
    was observed. LASER's core on DMLab (section 5.1).
    """

    def __init__(self, size: int, memory_span: int):
        super().__init__(size)
        # In each step both cells forget: together they remember half as long as one of them.
        self._predictor = lstm_cell.LSTMCell(size, 2 * memory_span)
        self._corrector = lstm_cell.LSTMCell(size, 2 * memory_span)

    def _project(self, observed: tf.Tensor, previous_action: tf.Tensor | None) -> list[tf.Tensor]:
        return [self._predictor.project(previous_action), self._corrector.project(observed)]

    def _step(
        self, projected: list[tf.Tensor], keep: tf.Tensor, state: lstm_cell.LSTMState
    ) -> lstm_cell.LSTMState:
        state = lstm_cell.LSTMState(*(keep * part for part in state))
        return self._corrector.step(projected[1], self._predictor.step(projected[0], state))


CORES: dict[str, Callable[[int, int], _Core]] = {"lstm": LSTMCore, "preco_lstm": PreCoLSTMCore}
