"""Single kernels from functions of several elementwise operations."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# On a CPU the call of a kernel of XLA takes 0.1 ms, as long as 50 operations on small tensors.
_MIN_ELEMENTS = 100_000


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function of tensors and constants to one kernel by XLA if a tensor is large.

    Each kernel of TensorFlow itself writes its whole result to memory: on a CPU the normalisation
    of a batch of Atari's images took four times as long. Exported policies, whose batch size is
    not static, do without XLA, because TFLite and ONNX cannot convert it. Inside a function that
    XLA compiles as a whole, nothing changes.

    A kernel repeats operations on small tensors for each element of the result. Compute costly
    ones, such as roots, before the call.
    """
    compiled = tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        sizes = [tensor.shape.num_elements() for tensor in arguments if tf.is_tensor(tensor)]
        if None in sizes or max(sizes) < _MIN_ELEMENTS:
            return function(*arguments)
        return compiled(*arguments)

    return call
