"""State of the caller's program that functions of the API leave as it is."""

import contextlib
import logging
import random
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Keeps the root logger and the global random numbers of Python and NumPy.

    Building an agent seeds them. Without any handler, `logging.info` would set up the root logger
    for the rest of the program. Then warnings are shown on standard error.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    root, handler = logging.getLogger(), logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    is_unused = not root.handlers
    if is_unused:
        root.addHandler(handler)
    try:
        yield
    finally:
        if is_unused:
            root.removeHandler(handler)
        random.setstate(python_state)
        np.random.set_state(numpy_state)
