"""Compiled functions between arrays: structure, values, errors, memory."""

import gc
import multiprocessing
from concurrent import futures

import numpy as np
import psutil
import tensorflow as tf
from absl.testing import absltest

from laser_tf import array_function, types


def _grown_bytes_a_call() -> list[float]:
    """Returns the memory that a call leaves behind, measured several times."""
    call = array_function.ArrayFunction(lambda *arrays: [array + 1 for array in arrays])
    arguments = [np.zeros([8], np.float32) for _ in range(10)]

    def grown_bytes(calls: int) -> int:
        gc.collect()
        before = psutil.Process().memory_info().rss
        for _ in range(calls):
            call(*arguments)
        gc.collect()
        return psutil.Process().memory_info().rss - before

    grown_bytes(1000)  # caches and allocators settle
    return [grown_bytes(1000) / 1000 for _ in range(3)]


class ArrayFunctionTest(absltest.TestCase):
    def test_nested_arguments_give_nested_results(self):
        def swap(first: types.AgentOutput, second: tf.Tensor):
            return {"sum": first.action + second, "rest": (first._replace(action=()), ())}

        call = array_function.ArrayFunction(swap)
        output = types.AgentOutput(np.arange(3, dtype=np.int32), np.ones([3, 2], np.float32))
        for offset in (1, 2):  # traced, then called
            result = call(output, np.int32(offset))
            np.testing.assert_array_equal(result["sum"], np.arange(3) + offset)
            self.assertIsInstance(result["sum"], np.ndarray)
            self.assertEqual(result["sum"].dtype, np.int32)
            np.testing.assert_array_equal(result["rest"][0].policy, np.ones([3, 2]))
            self.assertEqual(result["rest"][0].action, ())
            self.assertEqual(result["rest"][1], ())

    def test_second_call_keeps_results_of_the_first(self):
        call = array_function.ArrayFunction(lambda array: array + 1)
        argument = np.zeros([1000], np.float32)
        first = call(argument)
        argument += 5
        np.testing.assert_array_equal(call(argument), 6)
        np.testing.assert_array_equal(first, 1)

    def test_function_without_results_runs_in_each_call(self):
        total = tf.Variable(0)

        def add(number: tf.Tensor) -> dict:
            total.assign_add(number)
            return {}

        call = array_function.ArrayFunction(add)
        self.assertEqual([call(np.int32(number)) for number in (1, 2, 3)], [{}, {}, {}])
        self.assertEqual(total.numpy(), 6)

    def test_another_shape_is_rejected(self):
        call = array_function.ArrayFunction(lambda array: array + 1)
        call(np.zeros([2], np.float32))
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "shape"):
            call(np.zeros([3], np.float32))

    def test_error_of_the_function_is_raised(self):
        iterator = iter(tf.data.Dataset.range(1))
        call = array_function.ArrayFunction(iterator.get_next)
        self.assertEqual(call(), 0)
        with self.assertRaises(tf.errors.OutOfRangeError):
            call()

    def test_calls_leave_no_memory_behind(self):
        # In a separate process, where no other test takes memory.
        with futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
            grown = processes.submit(_grown_bytes_a_call).result()
        # Tensors that reach Python cost 16 bytes each, 320 a call of 10 arguments and 10 results.
        self.assertLess(min(grown), 100, f"bytes a call: {grown}")


if __name__ == "__main__":
    absltest.main()
