"""Work of XLA programs against numbers computed by hand, and the command's output."""

import json

import tensorflow as tf
from absl.testing import absltest

from laser_tf.environments import factory
from laser_tf.training import assembly
from launch import benchmark_hlo
from testing import commands, fakes


def _measure(function, *shapes, dtype=tf.float32):
    arguments = [tf.zeros(shape, dtype) for shape in shapes]
    compiled = tf.function(function, jit_compile=True, autograph=False)
    program = compiled.experimental_get_compiler_ir(*arguments)(stage="hlo_serialized")
    return benchmark_hlo.measure(program)


class MeasureTest(absltest.TestCase):
    def test_matrix_product_moves_its_operands_and_the_arguments(self):
        cost = _measure(lambda a, b: tf.tanh(tf.matmul(a, b)), [3, 5], [5, 7], dtype=tf.bfloat16)
        self.assertEqual(cost.flops, 2 * 3 * 5 * 7)
        one_pass = 2 * (3 * 5 + 5 * 7 + 3 * 7)  # bytes; the product's, and the program's
        self.assertEqual(cost.bytes_moved, 2 * one_pass)

    def test_strided_convolution_and_gradients_have_equal_operations(self):
        def convolve(images, kernel):
            return tf.nn.conv2d(images, kernel, strides=2, padding="VALID")

        forward = 2 * (6 * 4 * 4 * 5) * (3 * 3 * 2)  # results, products of each
        shapes = [6, 9, 9, 2], [3, 3, 2, 5]
        self.assertEqual(_measure(convolve, *shapes).flops, forward)

        def squares(images, kernel):
            return tf.reduce_sum(convolve(images, kernel) ** 2)

        by_all = tf.function(lambda *inputs: tf.gradients(squares(*inputs), inputs))
        by_kernel = tf.function(lambda *inputs: tf.gradients(squares(*inputs), inputs[1]))
        self.assertEqual(_measure(by_all, *shapes).flops, 3 * forward)
        self.assertEqual(_measure(by_kernel, *shapes).flops, 2 * forward)

    def test_padding_counts_no_operations(self):
        cost = _measure(
            lambda images, kernel: tf.nn.conv2d(images, kernel, strides=1, padding="SAME"),
            [1, 5, 5, 1],
            [3, 3, 1, 1],
        )
        # Along each axis, 5 places with 3 products, 2 of them without one.
        self.assertEqual(cost.flops, 2 * 13 * 13)

    def test_loop_and_its_gradient_count_every_step(self):
        steps = 7

        def gradient(state, weights):
            _, last = tf.while_loop(
                lambda step, _: step < steps,
                lambda step, state: (step + 1, tf.tanh(tf.matmul(state, weights))),
                (0, state),
                maximum_iterations=steps,
            )
            return tf.gradients(last, weights)

        cost = _measure(gradient, [2, 4], [4, 4])
        self.assertEqual(cost.flops, 3 * steps * 2 * (2 * 4 * 4))


class BatchTest(absltest.TestCase):
    def test_sequences_are_joined_and_have_the_states_of_their_parts(self):
        config = fakes.r2d2_catch_config()  # burn-in 5, length 10, parts of 5
        spec = factory.environment_spec(config.environment)
        agent = assembly.build_agent(config, spec, "float32", seed=1)
        signature = assembly.unroll_signature(config, spec, agent)
        batch = benchmark_hlo._blank_batch(config.replay, signature)
        size = config.replay.batch_size
        self.assertEqual(batch.unrolls.env_output.reward.shape, (size, 15 + 1))
        self.assertEqual(batch.stored_states[0].shape[:2], (size, 3 + 1))
        self.assertFalse(batch.is_online.any())


class CommandTest(commands.CommandTest):
    def test_program_is_written_once(self):
        path = self.workdir.with_suffix(".hlo")
        arguments = ("benchmark", "--config=configs/laser.py:catch", f"--hlo={path}")
        output, _ = self.succeed(*arguments)
        self.assertIn("HloModule", path.read_text())
        measured = json.loads(output)
        self.assertEqual(measured["agent_steps_of_a_batch"], 16 * 10)
        self.assertGreater(measured["flops_per_update"], 0)
        self.assertGreater(measured["bytes_moved_per_update"], measured["bytes_of_a_batch"])
        self.assert_rejected(("--hlo", path), *arguments)


if __name__ == "__main__":
    absltest.main()
