"""Reads the directory of an exported policy, which may be incomplete or damaged."""

import json
import pathlib
from typing import Any

from laser_tf import errors

DESCRIPTION = "policy.json"

_FORMAT = "saved_model"
_KEYS = (
    "tasks", "observation", "inputs", "config", "action_selection", "trained_env_frames",
    "learner_updates",
)  # fmt: skip
_FUNCTIONS = ("initial_state", "greedy", "sample")


def read_description(folder: pathlib.Path) -> dict[str, Any]:
    """Returns the content of `policy.json`.

    Raises UserError if the file is missing or damaged, or describes another format.
    """
    path = folder / DESCRIPTION
    try:
        about = json.loads(path.read_text())
        if not isinstance(about, dict):
            raise ValueError("it must be a mapping")
        model_format = about.get("format")
        if model_format in (None, _FORMAT) and (missing := [k for k in _KEYS if k not in about]):
            raise ValueError(f"it lacks {', '.join(missing)}")
    except FileNotFoundError:
        raise errors.UserError(
            f"{folder} holds no exported policy: {path} is missing. Use the output of "
            "launch.export."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise errors.UserError(
            f"cannot read {path}: {errors.first_line(error)}. Export the policy again."
        ) from None
    if model_format != _FORMAT:
        raise errors.UserError(
            f"the policy must have the format {_FORMAT}, but {folder} has the format "
            f"{model_format}. Use the program in its README.md, or launch.export without --format."
        )
    return about


def load_functions(folder: pathlib.Path) -> Any:
    """Returns an object with the functions of the SavedModel, see docs/export.md.

    Raises UserError if files are missing or damaged, or the functions are missing.
    """
    import tensorflow as tf

    try:
        functions = tf.saved_model.load(str(folder))
        if missing := [name for name in _FUNCTIONS if not hasattr(functions, name)]:
            raise ValueError(f"it has no function {missing[0]}")
    except Exception as error:  # TensorFlow raises many types for damaged files.
        raise errors.UserError(
            f"cannot load the SavedModel in {folder}: {errors.first_line(error)}. Export the "
            "policy again, or restore it from a backup."
        ) from None
    return functions
