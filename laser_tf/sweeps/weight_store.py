"""Weights of a population's members on disk: what others may go on from."""

import io
import pathlib
from collections.abc import Mapping

import numpy as np

from laser_tf import errors
from laser_tf.workdir import atomic


class UnreadableError(errors.UserError):
    """The file is gone or damaged; the message names it."""


def write(path: pathlib.Path, weights: Mapping[str, np.ndarray]) -> None:
    """Writes an uncompressed .npz, whole or not at all; makes its folder.

    Args:
      path: of the file.
      weights: name -> values.

    Raises:
      OSError: if it cannot be written.
    """
    file = io.BytesIO()
    np.savez(file, **weights)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, file.getvalue())


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
    """What `write` has written.

    Raises:
      UnreadableError: if it cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        reason = error.strerror or "it is damaged"
    except Exception as error:  # Damage shows as almost any error of NumPy's and zipfile's.
        reason = f"it is damaged, {type(error).__name__}"
    raise UnreadableError(
        f"cannot read {path} ({reason}), the weights of a member: restore the file from a backup, "
        "or start again with another --workdir"
    )
