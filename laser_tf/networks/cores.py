"""Recurrent cores between a torso and its heads.

A core maps features [T, B, F], optional last actions and optional last rewards to outputs
[T, B, H]. The core state is reset to zero BEFORE each time step whose `is_first` is true.

Input products are computed for all time steps at once, so that the loop over time computes only
the recurrent products. All computation is in float32.
"""

import abc
from collections.abc import Callable

import tensorflow as tf

from laser_tf.networks import lstm_cell, trunk_config


class _Core(tf.Module, abc.ABC):
    """Loops over time; subclasses define the input projection and the recurrent step."""

    def __init__(self, size: int):
        super().__init__()
        self._size = size

    def initial_state(self, batch_size: int) -> lstm_cell.LSTMState:
        """Returns a state of zeros."""
        zeros = tf.zeros([batch_size, self._size])
        return lstm_cell.LSTMState(zeros, zeros)

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
          features: [T, B, F].
          previous_action: One-hot encoding, float32 [T, B, A], ignored at the first step of an
            episode; None excludes actions from the input (unsupported by `PreCoLSTMCore`).
          reward: Reward that arrived with each step, float32 [T, B]; None excludes rewards.
          is_first: bool [T, B].
          state: Core state before step 0.

        Returns:
          Outputs float32 [T, B, H] and the core state after the last step.
        """
        is_first = tf.expand_dims(is_first, -1)
        observed = tf.cast(features, tf.float32)
        if reward is not None:
            observed = tf.concat([observed, reward[..., None]], axis=-1)
        if previous_action is not None:
            previous_action = tf.where(is_first, 0.0, previous_action)
        projected = self._project(observed, previous_action)
        state = lstm_cell.LSTMState(*state)
        if features.shape[0] == 1:  # Acting: the loop would cost more than the step itself.
            state = self._step([part[0] for part in projected], _reset(state, is_first[0]))
            return state.output[None], state
        return self._loop(projected, is_first, state)

    def _loop(
        self, projected: list[tf.Tensor], is_first: tf.Tensor, state: lstm_cell.LSTMState
    ) -> tuple[tf.Tensor, lstm_cell.LSTMState]:
        num_steps = is_first.shape[0]
        outputs = tf.TensorArray(tf.float32, num_steps, element_shape=state.output.shape)

        def body(step: tf.Tensor, state: lstm_cell.LSTMState, outputs: tf.TensorArray) -> tuple:
            state = _reset(state, is_first[step])
            state = self._step([part[step] for part in projected], state)
            return step + 1, state, outputs.write(step, state.output)

        _, state, outputs = tf.while_loop(
            lambda step, *_: step < num_steps,
            body,
            (0, state, outputs),
            maximum_iterations=num_steps,
        )
        return outputs.stack(), state

    @abc.abstractmethod
    def _project(self, observed: tf.Tensor, previous_action: tf.Tensor | None) -> list[tf.Tensor]:
        """Computes the input part of each cell's gates for all time steps, [T, B, ...]."""

    @abc.abstractmethod
    def _step(self, projected: list[tf.Tensor], state: lstm_cell.LSTMState) -> lstm_cell.LSTMState:
        """Advances the state by one step, given results of `_project` for it, [B, ...]."""


def _reset(state: lstm_cell.LSTMState, is_first: tf.Tensor) -> lstm_cell.LSTMState:
    """Returns a state with zeros for batch entries with a true `is_first`, bool [B, 1]."""
    # tf.where instead of a product, because NaN * 0 is NaN.
    return lstm_cell.LSTMState(*(tf.where(is_first, 0.0, part) for part in state))


class LSTMCore(_Core):
    """LSTM over features, last reward and last action (IMPALA, figure 3)."""

    def __init__(self, size: int, memory_span: int):
        super().__init__(size)
        self._cell = lstm_cell.LSTMCell(size, memory_span)

    def _project(self, observed: tf.Tensor, previous_action: tf.Tensor | None) -> list[tf.Tensor]:
        if previous_action is not None:
            observed = tf.concat([observed, previous_action], axis=-1)
        return [self._cell.project(observed)]

    def _step(self, projected: list[tf.Tensor], state: lstm_cell.LSTMState) -> lstm_cell.LSTMState:
        return self._cell.step(projected[0], state)


class PreCoLSTMCore(_Core):
    """Two LSTM cells that share one state (Amos et al. 2018, "Learning Awareness Models").

    The predictor advances the state from the last action. The corrector then updates the state
    from features and reward. LASER uses this core on DMLab (section 5.1).
    """

    def __init__(self, size: int, memory_span: int):
        super().__init__(size)
        # Both cells forget in each step, so together they remember half as long as a single cell.
        self._predictor = lstm_cell.LSTMCell(size, 2 * memory_span)
        self._corrector = lstm_cell.LSTMCell(size, 2 * memory_span)

    def _project(self, observed: tf.Tensor, previous_action: tf.Tensor | None) -> list[tf.Tensor]:
        return [self._predictor.project(previous_action), self._corrector.project(observed)]

    def _step(self, projected: list[tf.Tensor], state: lstm_cell.LSTMState) -> lstm_cell.LSTMState:
        return self._corrector.step(projected[1], self._predictor.step(projected[0], state))


def make(config: trunk_config.TrunkConfig) -> _Core | None:
    """Creates the core of a configuration; None for a feed-forward network."""
    if config.core == "none":
        return None
    return CORES[config.core](config.core_size, config.core_memory_span)


CORES: dict[str, Callable[[int, int], _Core]] = {"lstm": LSTMCore, "preco_lstm": PreCoLSTMCore}
