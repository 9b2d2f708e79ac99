"""Checkpoints of a sequence store on disk, each a zip archive, whose checksums tell of damage.

unrolls         packed unrolls, one after the other, each of them once
lengths.npy     bytes of each
places.npy      which of them each sequence has, [n, S]
numbers.npy, games.npy, keys.npy, priorities.npy
layout.txt      of an unroll
"""

import logging
import os
import pathlib
import zipfile
from typing import BinaryIO

import numpy as np

from laser_tf import errors
from laser_tf.replay import saved_tables, sequence_store

_UNROLLS, _LAYOUT = "unrolls", "layout.txt"


class SavedSequences:
    """The newest checkpoint at a path; beside it the one before, and the last damaged one."""

    def __init__(self, path: pathlib.Path):
        """Touches nothing yet.

        Args:
          path: of the newest one. The others' names have a suffix: `_previous`, `_damaged`, and
            `_saving` while it is being written.
        """
        self._path = path
        self._previous, self._damaged, self._saving = (
            path.with_stem(f"{path.stem}_{suffix}") for suffix in ("previous", "damaged", "saving")
        )

    def write(self, contents: sequence_store.Contents) -> None:
        """Saves a store's contents and keeps the checkpoint before, of which there is one.

        Raises:
          RuntimeError: if it cannot be written; the one before stays, and nothing of this one.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists():
                self._previous.unlink(missing_ok=True)  # else there were three
            with self._saving.open("wb") as file:
                _write(file, contents)
                file.flush()
                os.fsync(file.fileno())
            if self._path.exists():
                self._path.rename(self._previous)
            self._saving.rename(self._path)
        except OSError as error:
            raise RuntimeError(f"{self._path}: {error.strerror or error}") from None
        finally:
            self._saving.unlink(missing_ok=True)

    def restore(self, store: sequence_store.SequenceStore) -> None:
        """Fills an empty store from the newest checkpoint that is whole, if one is."""
        self._saving.unlink(missing_ok=True)  # of a process that was killed
        problems = []
        while self._path.exists() or self._previous.exists():
            try:
                if not self._path.exists():
                    raise saved_tables.DamagedError("it is missing")
                store.restore(read(self._path))
                break
            except ValueError as error:
                problems.append(str(error))
                self._set_aside()
        if problems:
            start = f"going on with {len(store)} sequences of the one before it"
            logging.warning(
                "the checkpoint of replay's sequences, %s, cannot be used (%s): %s",
                self._path, "; the one before it: ".join(problems),
                start if len(store) else "replay starts empty",
            )  # fmt: skip
        else:
            logging.info("replay begins with %s sequences", f"{len(store):,}")

    def _set_aside(self) -> None:
        if self._path.exists():
            self._path.replace(self._damaged)  # one is enough to look into
        if self._previous.exists():
            self._previous.rename(self._path)


def _write(file: BinaryIO, contents: sequence_store.Contents) -> None:
    places: dict[int, int] = {}  # by the identity of what is packed
    # Nothing is compressed twice.
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
    """What a checkpoint holds.

    Raises:
      DamagedError: if it is not what was written.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():  # of all that is in it
                raise saved_tables.DamagedError(f"{damaged} has another checksum")
            return _read(archive)
    except saved_tables.DamagedError:
        raise
    except Exception as error:  # Damage shows as almost any error of zipfile's and NumPy's.
        reason = errors.one_line(error, 200)
        raise saved_tables.DamagedError(f"it cannot be read: {reason}") from None


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
