"""Compiled functions between NumPy arrays."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import cancellation, context, execute


class ArrayFunction:
    """A `tf.function` of nests of arrays for frequent calls, not from several threads at once.

    Arrays enter and leave the graph through `tf.numpy_function`, since TensorFlow 2.15 under Python
    3.11 never frees 16 bytes of each tensor that reaches Python: an actor grew by 3 MB a minute.
    There is one graph, because looking it up took a third of the time of a small network.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self._call = tf.function(self._trace, autograph=False)
        self._concrete: Any = None  # the graph, once it is traced
        self._arguments: tuple[Any, ...] = ()
        self._results: Any = None
        self._empty: Any = None  # the results of a function without any tensor

    def __call__(self, *arguments: Any) -> Any:
        """Returns the function's results for nests of arrays of constant shapes and dtypes."""
        self._arguments = arguments
        if self._concrete is None:
            self._concrete = self._call.get_concrete_function()
        self._run()
        if self._empty is not None:
            return self._empty
        results, self._results = self._results, None
        return results

    def _run(self) -> None:
        context.context().call_function(self._concrete.name, self._concrete.captured_inputs, 0)

    def _trace(self) -> None:
        examples = tf.nest.map_structure(np.asarray, self._arguments)
        flat = tf.nest.flatten(examples)
        dtypes = [example.dtype for example in flat]
        received = tf.numpy_function(self._give, [], dtypes) if flat else []
        arguments = [
            tf.ensure_shape(tensor, example.shape)
            for tensor, example in zip(received, flat, strict=True)
        ]
        results = self._function(*tf.nest.pack_sequence_as(examples, arguments))
        structure = tf.nest.map_structure(lambda _: None, results)
        if not tf.nest.flatten(structure):
            self._empty = structure
            return

        def take(*arrays: np.ndarray) -> None:
            self._results = tf.nest.pack_sequence_as(structure, arrays)

        tf.numpy_function(take, tf.nest.flatten(results), [])

    def _give(self) -> list[Any]:
        return tf.nest.flatten(self._arguments)


class CancellableFunction(ArrayFunction):
    """An `ArrayFunction` whose call another thread may cancel, since it may never return."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        self._cancellation = cancellation.CancellationManager()

    def cancel(self) -> None:
        """Makes the current and all later calls raise `tf.errors.CancelledError`."""
        self._cancellation.start_cancel()

    def _run(self) -> None:
        # TensorFlow's own context is shared by all threads and would cancel the learner's update.
        options = context.context().function_call_options.as_attrs()
        execute.execute_with_cancellation(
            tf.compat.as_str(self._concrete.name),
            num_outputs=0,
            inputs=self._concrete.captured_inputs,
            attrs=tuple(itertools.chain(*options.items())),
            ctx=context.context(),
            cancellation_manager=self._cancellation,
        )
