"""Tests cores: equations, resets, single steps, gradients and XLA."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import cores, lstm_cell

R, B, F, A, H = 7, 3, 5, 4, 6
CORES = (("lstm", "lstm"), ("preco_lstm", "preco_lstm"))


def _inputs(seed=0, resets=True):
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(R, B, F)).astype(np.float32)
    action = np.eye(A, dtype=np.float32)[generator.integers(A, size=(R, B))]
    reward = generator.normal(size=(R, B)).astype(np.float32)
    is_first = np.zeros((R, B), bool)
    if resets:
        is_first[[0, 4], [0, 1]] = True
    state = lstm_cell.LSTMState(*generator.normal(size=(2, B, H)).astype(np.float32))
    return features, action, reward, is_first, state


def _made(name):
    """Returns a core with random weights and biases."""
    core = cores.CORES[name](H, 0)
    core(*_inputs())
    generator = np.random.default_rng(1)
    for variable in core.trainable_variables:
        variable.assign(generator.normal(size=variable.shape))
    return core


def _sigmoid(values):
    return 1 / (1 + np.exp(-values))


def _cell(weights, inputs, output, memory):
    kernel, bias, recurrent = weights
    enter, forget, candidate, leave = np.split(inputs @ kernel + bias + output @ recurrent, 4, -1)
    memory = _sigmoid(forget + 1) * memory + _sigmoid(enter) * np.tanh(candidate)
    return _sigmoid(leave) * np.tanh(memory), memory


def _weights(cell):
    return cell._input.kernel.numpy(), cell._input.bias.numpy(), cell._recurrent.kernel.numpy()


def _reference(name, core, features, action, reward, is_first, state):
    """Computes outputs and state with loops over batch and time."""
    outputs = np.zeros((R, B, H))
    states = []
    for column in range(B):
        output, memory = (part[column] for part in state)
        for row in range(R):
            played = action[row, column]
            if is_first[row, column]:
                output, memory, played = np.zeros(H), np.zeros(H), np.zeros(A)
            seen = np.append(features[row, column], reward[row, column])
            if name == "lstm":
                both = np.concatenate([seen, played])
                output, memory = _cell(_weights(core._cell), both, output, memory)
            else:
                output, memory = _cell(_weights(core._predictor), played, output, memory)
                output, memory = _cell(_weights(core._corrector), seen, output, memory)
            outputs[row, column] = output
        states.append((output, memory))
    return outputs, [np.stack(part) for part in zip(*states, strict=True)]


class CoresTest(parameterized.TestCase):
    @parameterized.named_parameters(*CORES)
    def test_unroll_equals_reference_loop(self, name):
        core, inputs = _made(name), _inputs()
        outputs, state = core(*inputs)
        expected, expected_state = _reference(name, core, *inputs)
        np.testing.assert_allclose(outputs, expected, atol=1e-5)
        np.testing.assert_allclose(state.output, expected_state[0], atol=1e-5)
        np.testing.assert_allclose(state.memory, expected_state[1], atol=1e-5)

    @parameterized.named_parameters(*CORES)
    def test_single_steps_equal_unroll(self, name):
        core, (*columns, state) = _made(name), _inputs()
        expected, expected_state = core(*columns, state)
        outputs = []
        for row in range(R):
            output, state = core(*(column[row : row + 1] for column in columns), state)
            outputs.append(output[0])
        np.testing.assert_allclose(tf.stack(outputs), expected, atol=1e-6)
        tf.nest.map_structure(
            lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6),
            state, expected_state,
        )  # fmt: skip

    @parameterized.named_parameters(*CORES)
    def test_new_episode_ignores_previous_episode(self, name):
        core, (features, action, reward, is_first, state) = _made(name), _inputs()
        outputs, _ = core(features, action, reward, is_first, state)
        other = np.where(np.arange(R)[:, None, None] < 4, 0.5, action)
        other[4, 1] = 0.25  # Last action of the previous episode.
        features = np.where(np.arange(R)[:, None, None] < 4, -features, features)
        changed, _ = core(
            features, other, reward, is_first, lstm_cell.LSTMState(*(-x for x in state))
        )
        np.testing.assert_array_equal(outputs[4:, 1], changed[4:, 1])
        self.assertGreater(np.abs(outputs - changed)[:, 0].max(), 0.01)

    @parameterized.named_parameters(*CORES)
    def test_gradient_stops_at_reset(self, name):
        core, (features, *columns) = _made(name), _inputs()
        features = tf.constant(features)
        with tf.GradientTape() as tape:
            tape.watch(features)
            loss = tf.reduce_sum(core(features, *columns)[0][-1])
        gradient = tape.gradient(loss, features).numpy()
        self.assertTrue((np.abs(gradient[0, [0, 2]]).sum(-1) > 0).all())
        np.testing.assert_array_equal(gradient[:4, 1], 0)
        self.assertGreater(np.abs(gradient[4, 1]).sum(), 0)

    @parameterized.named_parameters(*CORES)
    def test_compiled_gradient_equals_eager(self, name):
        core, inputs = _made(name), _inputs()

        def gradient():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(core(*inputs)[0] ** 2)
            return tape.gradient(loss, core.trainable_variables)

        for one, other in zip(tf.function(gradient, jit_compile=True)(), gradient(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

    def test_lstm_without_actions_and_rewards_reads_features_only(self):
        features, _, _, is_first, state = _inputs()
        core = cores.CORES["lstm"](H, 0)
        outputs, _ = core(features, None, None, is_first, state)
        weights = _weights(core._cell)
        self.assertEqual(weights[0].shape, (F, 4 * H))
        for column in range(B):
            output, memory = (part[column] for part in state)
            for row in range(R):
                if is_first[row, column]:
                    output, memory = np.zeros(H), np.zeros(H)
                output, memory = _cell(weights, features[row, column], output, memory)
                np.testing.assert_allclose(outputs[row, column], output, rtol=1e-4, atol=1e-5)

    def test_memory_span_spreads_forgetting_rates(self):
        cell = lstm_cell.LSTMCell(1000, memory_span=50)
        zeros = tf.zeros([1, 1000])
        state = lstm_cell.LSTMState(zeros, zeros + 1.0)
        kept = cell.step(cell.project(tf.zeros([1, 3])), state).memory.numpy()[0]
        spans = 1 / (1 - kept)  # Steps, 1 + u.
        self.assertTrue((spans > 2 - 1e-3).all() and (spans < 50 + 1e-3).all())
        np.testing.assert_allclose(spans.mean(), 26, atol=2)  # Mean of a uniform distribution.
        enter, *_ = np.split(cell.project(tf.zeros([1, 3])).numpy()[0], 4)
        np.testing.assert_allclose(_sigmoid(enter), 1 - kept, rtol=1e-4)

    @parameterized.named_parameters(*CORES)
    def test_initial_state_is_zero(self, name):
        state = cores.CORES[name](H, 0).initial_state(B)
        for part in state:
            np.testing.assert_array_equal(part, np.zeros((B, H), np.float32))


if __name__ == "__main__":
    absltest.main()
