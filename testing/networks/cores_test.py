"""Tests cores: equations, resets, single steps, gradients and XLA."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import cores, lstm_cell
from testing import numpy_reference

R, B, F, A, H = 7, 3, 5, 4, 6


def _inputs(seed=0):
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(R, B, F)).astype(np.float32)
    action = np.eye(A, dtype=np.float32)[generator.integers(A, size=(R, B))]
    reward = generator.normal(size=(R, B)).astype(np.float32)
    is_first = np.zeros((R, B), bool)
    is_first[[0, 4], [0, 1]] = True
    state = lstm_cell.LSTMState(*generator.normal(size=(2, B, H)).astype(np.float32))
    return features, action, reward, is_first, state


def _made(name, inputs=None):
    """Returns a core with random weights and biases."""
    core = cores.CORES[name](H, 0)
    core(*(inputs or _inputs()))
    generator = np.random.default_rng(1)
    for variable in core.trainable_variables:
        variable.assign(generator.normal(size=variable.shape))
    return core


def _reference(core, features, action, reward, is_first, state):
    """Computes outputs and state with loops over batch and time; action and reward may be None."""
    outputs, states, step = np.zeros((R, B, H)), [], numpy_reference.lstm_step
    for b in range(B):
        output, memory = (part[b] for part in state)
        for t in range(R):
            keep = 1.0 - is_first[t, b]
            output, memory = keep * output, keep * memory
            seen = features[t, b] if reward is None else np.append(features[t, b], reward[t, b])
            last = np.zeros(0) if action is None else keep * action[t, b]
            if isinstance(core, cores.LSTMCore):
                output, memory = numpy_reference.lstm_step(
                    core._cell, np.append(seen, last), output, memory
                )
            else:
                output, memory = step(core._predictor, last, output, memory)
                output, memory = step(core._corrector, seen, output, memory)
            outputs[t, b] = output
        states.append((output, memory))
    return outputs, [np.stack(part) for part in zip(*states, strict=True)]


class CoresTest(parameterized.TestCase):
    @parameterized.parameters(("lstm", True), ("lstm", False), ("preco_lstm", True))
    def test_unroll_and_single_steps_equal_reference_loop(self, name, reads_rewards_and_actions):
        inputs = _inputs()
        if not reads_rewards_and_actions:
            inputs = (inputs[0], None, None, *inputs[3:])
        core = _made(name, inputs)
        expected, expected_state = _reference(core, *inputs)
        outputs, state = core(*inputs)
        np.testing.assert_allclose(outputs, expected, atol=1e-5)
        np.testing.assert_allclose(state, expected_state, atol=1e-5)
        *sequences, state = inputs
        for t in range(R):
            step = (None if x is None else x[t : t + 1] for x in sequences)
            output, state = core(*step, state)
            np.testing.assert_allclose(output[0], expected[t], atol=1e-5)
        np.testing.assert_allclose(state, expected_state, atol=1e-5)

    @parameterized.product(name=("lstm", "preco_lstm"), steps=(1, R))
    def test_reset_replaces_a_state_that_is_not_finite(self, name, steps):
        core, (*sequences, is_first, state) = _made(name), _inputs()
        inputs = [x[:steps] for x in (*sequences, is_first | (np.arange(R)[:, None] == 0))]
        expected, _ = core(*inputs, state)
        outputs, _ = core(*inputs, lstm_cell.LSTMState(*np.full([2, B, H], np.nan, np.float32)))
        np.testing.assert_array_equal(outputs, expected)

    @parameterized.parameters("lstm", "preco_lstm")
    def test_gradient_stops_at_reset(self, name):
        core, (features, *others) = _made(name), _inputs()
        features = tf.constant(features)
        with tf.GradientTape() as tape:
            tape.watch(features)
            loss = tf.reduce_sum(core(features, *others)[0][-1])
        gradient = tape.gradient(loss, features).numpy()
        self.assertTrue((np.abs(gradient[0, [0, 2]]).sum(-1) > 0).all())
        np.testing.assert_array_equal(gradient[:4, 1], 0)
        self.assertGreater(np.abs(gradient[4, 1]).sum(), 0)

    @parameterized.parameters("lstm", "preco_lstm")
    def test_compiled_gradient_equals_eager(self, name):
        core, inputs = _made(name), _inputs()

        def gradient():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(core(*inputs)[0] ** 2)
            return tape.gradient(loss, core.trainable_variables)

        for one, other in zip(tf.function(gradient, jit_compile=True)(), gradient(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

    def test_memory_span_spreads_forgetting_rates(self):
        cell = lstm_cell.LSTMCell(1000, memory_span=50)
        zeros = tf.zeros([1, 1000])
        state = lstm_cell.LSTMState(zeros, zeros + 1.0)
        kept = cell.step(cell.project(tf.zeros([1, 3])), state).memory.numpy()[0]
        spans = 1 / (1 - kept)  # Steps, 1 + u.
        self.assertTrue((spans > 2 - 1e-3).all() and (spans < 50 + 1e-3).all())
        np.testing.assert_allclose(spans.mean(), 26, atol=2)  # Mean of a uniform distribution.
        enter, *_ = np.split(cell.project(tf.zeros([1, 3])).numpy()[0], 4)
        np.testing.assert_allclose(numpy_reference.sigmoid(enter), 1 - kept, rtol=1e-4)


if __name__ == "__main__":
    absltest.main()
