"""State of the caller's program that functions of the API leave as it is."""

import contextlib
import random
from collections.abc import Iterator

import numpy as np

from laser_tf.host import log_messages


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Keeps the root logger and the global random numbers of Python and NumPy.

    Building an agent seeds them. See `log_messages.keeping_root_logger`, too.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with log_messages.keeping_root_logger():
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
