"""Weights that are not finite: nothing that follows from them is worth keeping."""

from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from laser_tf import errors


class NonFiniteWeightsError(errors.UserError):
    """Weights, or what the optimiser or PopArt keeps of them, hold NaN or infinity."""


def find_non_finite(named: Iterable[tuple[str, tf.Variable | np.ndarray]]) -> str | None:
    """The name of the first value that holds NaN or infinity; None where all are finite."""
    for name, value in named:
        array = value.numpy() if isinstance(value, tf.Variable) else value
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            return name
    return None
