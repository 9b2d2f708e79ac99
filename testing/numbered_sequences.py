"""Sequences of environments with contents that follow from their numbers."""

import numpy as np
import tree

from laser_tf.replay import stored_unroll
from laser_tf.replay.schemes import contextual
from testing import fakes

U, S = 4, 3  # steps of an unroll, unrolls of a sequence
SIGNATURE = fakes.signature(
    fakes.image_spec((5, 4, 1), 3), (), unroll_length=U, frame_stack=2, for_sequences=True
)
BLANK = -1


def config(**overrides) -> contextual.Contextual:
    """Returns the configuration of a store of these sequences."""
    values = {
        "unroll_length": U,
        "frame_stack": 2,
        "batch_size": 4,
        "capacity": 100 * U,
        "steps_per_update": U,
        "sequence_length": 2 * U,
        "sequence_overlap": U,
        "burn_in": U,
        "priority_exponent": 1.0,
    }
    return contextual.Contextual(**values | overrides)


def make(
    environment: int, newest: int, blanks: tuple[int, int] = (0, 0)
) -> stored_unroll.StoredUnroll:
    """Returns a sequence, arrays [S, ...].

    Args:
      environment: Number of the environment.
      newest: Number of the last unroll that is not blank.
      blanks: Number of blank unrolls before and after the others.
    """
    real = S - sum(blanks)
    numbers = [BLANK] * blanks[0] + [*range(newest - real + 1, newest + 1)] + [BLANK] * blanks[1]
    return tree.map_structure(
        lambda *parts: np.stack(parts), *[_unroll(environment, n) for n in numbers]
    )


def _unroll(environment: int, number: int) -> stored_unroll.StoredUnroll:
    if number == BLANK:
        return stored_unroll.blank(SIGNATURE)
    rng = np.random.default_rng((environment, number))
    unroll = tree.map_structure(
        lambda spec: rng.integers(0, 100, spec.shape).astype(spec.dtype.as_numpy_dtype), SIGNATURE
    )
    return unroll._replace(
        new_steps=np.int64(U),
        stream=np.int64(environment),
        number=np.int64(number),
        task=np.int32(environment),
    )
