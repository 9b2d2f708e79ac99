"""Checkpoints of Reverb's tables with a manifest that detects damage.

Reverb does not verify its files: a truncated file restores fewer items or aborts the process. A
checkpoint is a directory, named after its time, with Reverb's files and `manifest.json`:

    {"crc32": {"chunks.tfrecord": 3735928559, ...}, "items": {"replay": 8, "online": 8}}
"""

import collections
import json
import pathlib
import zlib
from collections.abc import Iterator
from typing import TypeAlias

from reverb.cc import schema_pb2
from reverb.cc.checkpointing import checkpoint_pb2
from tensorflow.python.lib.io import _pywrap_record_io

from laser_tf import errors
from laser_tf.workdir import atomic, checkpoint_rotation

MANIFEST = "manifest.json"
Table: TypeAlias = checkpoint_pb2.PriorityTableCheckpoint
_DONE, _ITEMS, _TABLES, _CHUNKS = "DONE", "items.tfrecord", "tables.tfrecord", "chunks.tfrecord"
_FILES = (_DONE, _ITEMS, _TABLES, _CHUNKS)
_BLOCK_BYTES = 1 << 20  # read at once


def find(root: pathlib.Path) -> pathlib.Path | None:
    """Returns the newest checkpoint in a directory, or None for an empty directory."""
    return max((path for path in root.glob("*") if path.is_dir()), default=None)


def write_manifest(checkpoint: pathlib.Path) -> None:
    """Writes the manifest of a new checkpoint; raises DamagedError for incomplete files."""
    # Reverb ignores errors of closing a file, when a full disk is reported for small files.
    for name in (_ITEMS, _TABLES, _CHUNKS):
        _check_complete(checkpoint / name)
    manifest = {
        "crc32": {name: _crc32(checkpoint / name) for name in _FILES},
        "items": collections.Counter(item.table for item in _items(checkpoint)),
    }
    atomic.write(checkpoint / MANIFEST, json.dumps(manifest, indent=2) + "\n")


def verify(checkpoint: pathlib.Path) -> dict[str, int]:
    """Verifies a checkpoint against its manifest; returns the items of each table that has any.

    Raises DamagedError if the checkpoint differs from what was saved.
    """
    try:
        manifest = json.loads((checkpoint / MANIFEST).read_text())
        for name in _FILES:
            if _crc32(checkpoint / name) != manifest["crc32"][name]:
                raise ValueError(f"the checksum of {name} differs")
        return dict(manifest["items"])
    except Exception as error:  # A damaged manifest may have any content.
        raise checkpoint_rotation.DamagedError(
            f"it cannot be read: {errors.one_line(error, 200)}"
        ) from None


def tables(checkpoint: pathlib.Path) -> dict[str, Table]:
    """Returns the saved tables of a checkpoint, by name, without their items."""
    saved = map(Table.FromString, _records(checkpoint / _TABLES))
    return {table.table_name: table for table in saved}


def keys(checkpoint: pathlib.Path, table: str) -> list[int]:
    """Returns the keys of a table's items, oldest first, as Reverb saves them."""
    return [item.key for item in _items(checkpoint) if item.table == table]


def _items(checkpoint: pathlib.Path) -> Iterator[schema_pb2.PrioritizedItem]:
    return map(schema_pb2.PrioritizedItem.FromString, _records(checkpoint / _ITEMS))


def _blocks(path: pathlib.Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _crc32(path: pathlib.Path) -> int:
    checksum = 0
    for block in _blocks(path):
        checksum = zlib.crc32(block, checksum)
    return checksum


def _records(path: pathlib.Path) -> Iterator[bytes]:
    return _pywrap_record_io.RecordIterator(str(path), "ZLIB")


def _check_complete(path: pathlib.Path) -> None:
    """Raises DamagedError unless a compressed file ends as zlib expects."""
    stream = zlib.decompressobj()
    try:
        for block in _blocks(path):
            stream.decompress(block)
    except zlib.error:
        raise checkpoint_rotation.DamagedError(f"{path.name} cannot be decompressed") from None
    if not stream.eof or stream.unused_data:
        raise checkpoint_rotation.DamagedError(f"{path.name} is incomplete")
