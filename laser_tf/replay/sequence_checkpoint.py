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
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from laser_tf import errors
from laser_tf.replay import sequence_store
from laser_tf.workdir import checkpoint_rotation

_UNROLLS, _LAYOUT = "unrolls", "layout.txt"


class SequenceCheckpoints:
    """Newest and previous checkpoint of a sequence store at a path."""

    def __init__(self, path: pathlib.Path):
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

    def restore(
        self, make_store: Callable[[], sequence_store.SequenceStore]
    ) -> sequence_store.SequenceStore:
        """Returns a new store with the contents of the newest usable checkpoint, if any."""

        def load(path: pathlib.Path) -> sequence_store.SequenceStore:
            store = make_store()
            try:
                with zipfile.ZipFile(path) as archive:
                    if damaged := archive.testzip():
                        raise ValueError(f"the checksum of {damaged} differs")
                    store.restore(_read(archive))
            except Exception as error:  # zipfile and NumPy raise almost any exception for damage.
                raise checkpoint_rotation.DamagedError(errors.one_line(error, 200)) from None
            return store

        restored = self._checkpoints.restore(load)
        store = make_store() if restored is None else restored
        logging.info("Replay starts with %s sequences", f"{len(store):,}")
        return store


def _write(file: BinaryIO, contents: sequence_store.Contents) -> None:
    sequences = contents.sequences
    places: dict[int, int] = {}  # index of each packed unroll, by its identity
    # Stored without compression, because unrolls are already compressed.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        lengths = []
        with archive.open(_UNROLLS, "w", force_zip64=True) as out:
            for unroll in (unroll for sequence in sequences for unroll in sequence.unrolls):
                if id(unroll) not in places:
                    places[id(unroll)] = len(lengths)
                    lengths.append(len(unroll))
                    out.write(unroll)
        arrays = {
            "lengths": lengths,
            "places": [[places[id(u)] for u in sequence.unrolls] for sequence in sequences],
            "numbers": [sequence.numbers for sequence in sequences],
            "games": [sequence.stream for sequence in sequences],
            "keys": [sequence.key for sequence in sequences],
            "priorities": contents.priorities,
        }
        for name, values in arrays.items():
            dtype = np.float64 if name == "priorities" else np.int64
            with archive.open(f"{name}.npy", "w", force_zip64=True) as out:
                np.lib.format.write_array(out, np.asarray(values, dtype), allow_pickle=False)
        archive.writestr(_LAYOUT, contents.layout)


def _read(archive: zipfile.ZipFile) -> sequence_store.Contents:
    def array(name: str) -> np.ndarray:
        with archive.open(f"{name}.npy") as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    with archive.open(_UNROLLS) as file:
        unrolls = [file.read(length) for length in array("lengths").tolist()]
    columns = [array(name).tolist() for name in ("keys", "games", "numbers", "places")]
    sequences = [
        sequence_store.StoredSequence(
            key, stream, tuple(numbers), tuple(unrolls[place] for place in places)
        )
        for key, stream, numbers, places in zip(*columns, strict=True)
    ]
    return sequence_store.Contents(archive.read(_LAYOUT).decode(), array("priorities"), sequences)
