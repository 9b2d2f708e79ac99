"""Compiled functions between NumPy arrays."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from tensorflow.python.eager import cancellation, context, execute


class ArrayFunction:
    """A `tf.function` that takes and returns nests of arrays, for what is called all the time.

    Arrays enter and leave the graph by `tf.numpy_function`, since TensorFlow 2.15 under Python 3.11
    never frees 16 bytes of each tensor that reaches Python, which made an actor grow by 3 MB a
    minute. It is also a quarter faster for a small network than converting each array by itself.

    Not for several threads at once.
    """

    def __init__(self, function: Callable[..., Any], *, jit_compile: bool = False):
        """Compiles `function`, of nests of tensors, at its first call."""
        self._function = tf.function(function, jit_compile=jit_compile, autograph=False)
        self._call = tf.function(self._trace, autograph=False)
        self._concrete: Any = None
        self._attributes: tuple[Any, ...] = ()  # of a call, as TensorFlow itself makes it
        self._arguments: tuple[Any, ...] = ()  # of the first call
        self._given: list[Any] = []  # the arguments' arrays
        self._taken: tuple[np.ndarray, ...] = ()  # the results'
        self._structure: Any = None  # of the results

    def __call__(self, *arguments: Any) -> Any:
        """Returns the function's results.

        Args:
          *arguments: nests of arrays, of the same shapes and dtypes in every call.
        """
        self._given = tree.flatten(arguments)
        if self._concrete is None:
            self._prepare(arguments)
        # A call of a `tf.function` would cost as much again as a small network.
        self._execute(
            tf.compat.as_str(self._concrete.name),
            num_outputs=0,
            inputs=self._concrete.captured_inputs,
            attrs=self._attributes,
            ctx=context.context(),
        )
        taken, self._taken = self._taken, ()
        return tree.unflatten_as(self._structure, taken)

    def _prepare(self, arguments: tuple[Any, ...]) -> None:
        self._arguments = arguments
        self._concrete = self._call.get_concrete_function()
        self._arguments = ()
        options = context.context().function_call_options
        self._attributes = tuple(itertools.chain(*options.as_attrs().items()))

    _execute = staticmethod(execute.execute)

    def _trace(self) -> None:
        examples = tree.map_structure(np.asarray, self._arguments)
        flat = tree.flatten(examples)
        dtypes = [example.dtype for example in flat]
        received = tf.numpy_function(self._give, [], dtypes) if flat else []
        arguments = [
            tf.ensure_shape(tensor, example.shape)
            for tensor, example in zip(received, flat, strict=True)
        ]
        results = self._function(*tree.unflatten_as(examples, arguments))
        self._structure = tree.map_structure(lambda _: None, results)
        tf.numpy_function(self._take, tree.flatten(results), [])

    def _give(self) -> list[Any]:
        return self._given

    def _take(self, *arrays: np.ndarray) -> None:
        self._taken = arrays


class CancellableFunction(ArrayFunction):
    """An `ArrayFunction` whose call may be ended from another thread, for what may never return."""

    def __init__(self, function: Callable[..., Any]):
        """Compiles `function`, of nests of tensors, at its first call."""
        super().__init__(function)
        self._cancellation = cancellation.CancellationManager()

    def cancel(self) -> None:
        """Has the call under way, and all to come, raise `tf.errors.CancelledError`."""
        self._cancellation.start_cancel()

    def _execute(self, *arguments: Any, **options: Any) -> None:
        # TensorFlow's own context for this is one for all threads: the learner's update would be
        # cancelled along.
        execute.execute_with_cancellation(
            *arguments, **options, cancellation_manager=self._cancellation
        )
