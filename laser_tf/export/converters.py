"""Converts the greedy policy, whose torso computes in float32, to a file of TFLite or ONNX.

Inputs have the names of the SavedModel's signature `greedy`. Outputs are `action` and
`next_state_<name>`: in a graph of ONNX an output must not have the name of an input.
"""

import os
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf

from laser_tf import errors
from laser_tf.export import portable_policy
from laser_tf.host import native_messages

ONNX = "onnx"
_INSTALLATION = (
    "run make onnx, or pip install --no-deps tf2onnx==1.16.1 onnx==1.17.0 onnxruntime==1.26.0"
)


def write_tflite(policy: portable_policy.PortablePolicy, path: pathlib.Path) -> None:
    """Writes the greedy policy for TFLite, with its builtin operations alone.

    The only signature is `serving_default`. Raises UserError if TFLite lacks an operation.
    """
    greedy = _greedy(policy).get_concrete_function()
    model = tf.Module()
    model.variables_to_freeze = greedy.variables
    converter = tf.lite.TFLiteConverter.from_concrete_functions([greedy], model)
    with native_messages.diverted(pathlib.Path(os.devnull)):  # Statistics, at every log level.
        content = _convert("tflite", converter.convert)
    path.write_bytes(content)


def write_onnx(policy: portable_policy.PortablePolicy, path: pathlib.Path) -> None:
    """Writes the greedy policy for ONNX, with operation set 15.

    Raises UserError if ONNX lacks an operation; also see `import_tf2onnx`.
    """
    tf2onnx, greedy = import_tf2onnx(), _greedy(policy)
    import onnx

    def convert() -> Any:
        converted, _ = tf2onnx.convert.from_function(greedy, greedy.input_signature, opset=15)
        onnx.checker.check_model(converted)  # tf2onnx keeps operations that ONNX lacks.
        return converted

    model = _convert(ONNX, convert)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    path.write_bytes(model.SerializeToString())


def import_tf2onnx() -> ModuleType:
    """Imports tf2onnx; raises MissingPackageError if it or a package that it imports is missing."""
    try:
        import onnx  # noqa: F401
        import tf2onnx
    except ModuleNotFoundError as error:
        raise errors.MissingPackageError(
            f"the format onnx needs the package {error.name!r}: {_INSTALLATION}"
        ) from None
    return tf2onnx


def _greedy(policy: portable_policy.PortablePolicy) -> tf.types.experimental.GenericFunction:
    """Returns the greedy function with named inputs and outputs."""
    signature = [*policy.step_signature(), policy.state_signature()]
    return portable_policy.with_named_tensors(policy.greedy, signature, "next_state_")


def _convert(model_format: str, converter: Callable[[], Any]) -> Any:
    """Returns the result of a converter; its errors have many types and name an operation."""
    try:
        return converter()
    except Exception as error:
        raise errors.UserError(
            f"the policy cannot be converted to {model_format}: {errors.first_line(error)}. Use "
            "--format=saved_model."
        ) from error


WRITERS = {"tflite": write_tflite, ONNX: write_onnx}
