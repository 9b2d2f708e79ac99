"""Checkpoints of a sequence store: zip archives, whose checksums detect damage.

unrolls         packed unrolls, concatenated; unrolls shared by sequences are stored once
lengths.npy     bytes of each unroll, [U]
places.npy      indices of the unrolls of each sequence, [n, S]
numbers.npy, games.npy, keys.npy, priorities.npy
layout.txt      specification of an unroll
"""

import logging
import pathlib
import zipfile
from typing import BinaryIO

import numpy as np

from laser_tf import errors
from laser_tf.replay import sequence_store
from laser_tf.workdir import checkpoint_rotation

_UNROLLS, _LAYOUT = "unrolls", "layout.txt"


class SequenceCheckpoints:
    """Newest and previous checkpoint of a sequence store at a path."""

    def __init__(self, path: pathlib.Path):
        """Touches no file.

        Args:
          path: File of the newest checkpoint. See `checkpoint_rotation.CheckpointRotation` for the
            others.
        """
        self._checkpoints = checkpoint_rotation.CheckpointRotation(path)

    def save(self, contents: sequence_store.Contents) -> None:
        """Saves the contents of a store and keeps the previous checkpoint.

        Raises:
          RuntimeError: If the checkpoint cannot be written. Existing checkpoints are unchanged.
        """
        try:
            with self._checkpoints.saving() as path, path.open("wb") as file:
                _write(file, contents)
        except OSError as error:
            message = f"{self._checkpoints.newest}: {error.strerror or error}"
            raise RuntimeError(message) from None

    def restore(self, store: sequence_store.SequenceStore) -> None:
        """Fills an empty store from the newest usable checkpoint, if any."""

        def load(path: pathlib.Path) -> None:
            try:
                store.restore(read(path))
            except ValueError as error:
                raise checkpoint_rotation.DamagedError(str(error)) from None

        self._checkpoints.restore(load)
        logging.info("Replay starts with %s sequences", f"{len(store):,}")


def _write(file: BinaryIO, contents: sequence_store.Contents) -> None:
    places: dict[int, int] = {}  # index of each packed unroll, by its identity
    # Stored without compression, because unrolls are already compressed.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        lengths = []
        with archive.open(_UNROLLS, "w", force_zip64=True) as out:
            for sequence in contents.sequences:
                for unroll in sequence.unrolls:
                    if id(unroll) not in places:
                        places[id(unroll)] = len(lengths)
                        lengths.append(len(unroll))
                        out.write(unroll)
        arrays = {
            "lengths": lengths,
            "places": [[places[id(u)] for u in s.unrolls] for s in contents.sequences],
            "numbers": [s.numbers for s in contents.sequences],
            "games": [s.game for s in contents.sequences],
            "keys": contents.keys,
            "priorities": contents.priorities,
        }
        for name, values in arrays.items():
            dtype = np.float64 if name == "priorities" else np.int64
            with archive.open(f"{name}.npy", "w", force_zip64=True) as out:
                np.lib.format.write_array(out, np.asarray(values, dtype), allow_pickle=False)
        archive.writestr(_LAYOUT, contents.layout)


def read(path: pathlib.Path) -> sequence_store.Contents:
    """Reads a checkpoint.

    Raises:
      DamagedError: If the checkpoint differs from what was saved.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise checkpoint_rotation.DamagedError(f"the checksum of {damaged} differs")
            return _read(archive)
    except checkpoint_rotation.DamagedError:
        raise
    except Exception as error:  # zipfile and NumPy raise almost any exception for damage.
        reason = errors.one_line(error, 200)
        raise checkpoint_rotation.DamagedError(f"it cannot be read: {reason}") from None


def _read(archive: zipfile.ZipFile) -> sequence_store.Contents:
    def array(name: str) -> np.ndarray:
        with archive.open(f"{name}.npy") as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    with archive.open(_UNROLLS) as file:
        unrolls = [file.read(length) for length in array("lengths").tolist()]
    rows = zip(
        array("games").tolist(), array("numbers").tolist(), array("places").tolist(), strict=True
    )
    sequences = [
        sequence_store.Sequence(game, tuple(numbers), tuple(unrolls[place] for place in places))
        for game, numbers, places in rows
    ]
    return sequence_store.Contents(
        archive.read(_LAYOUT).decode(), array("keys"), array("priorities"), sequences
    )
