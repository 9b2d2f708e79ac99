"""Checkpoints of Reverb's tables with a manifest that detects damage.

Reverb does not verify its files: a truncated file restores fewer items or aborts the process. A
checkpoint is a directory, named after its time, with Reverb's files and `manifest.json`:

    {"files": {"chunks.tfrecord": {"bytes": 2032, "crc32": 3735928559}, ...},
     "items": {"replay": 8, "online": 8}}
"""

import collections
import json
import pathlib
import struct
import zlib
from collections.abc import Iterator

from reverb.cc import schema_pb2

from laser_tf import errors
from laser_tf.workdir import atomic, checkpoint_rotation

MANIFEST = "manifest.json"
_DONE, _ITEMS = "DONE", "items.tfrecord"
_COMPRESSED = ("tables.tfrecord", "chunks.tfrecord")
_FILES = (_DONE, _ITEMS, *_COMPRESSED)
_BLOCK = 1 << 20  # bytes read at once


def find(root: pathlib.Path) -> pathlib.Path | None:
    """Returns the newest checkpoint in a directory, or None for an empty directory."""
    return max((path for path in root.glob("*") if path.is_dir()), default=None)


def write_manifest(checkpoint: pathlib.Path) -> None:
    """Writes the manifest of a new checkpoint.

    Raises:
      DamagedError: If Reverb's files are incomplete.
      OSError: If a file cannot be read or written.
    """
    # Reverb ignores errors of closing a file, when a full disk is reported for small files.
    items = _read_through(checkpoint)
    files = {
        name: {"bytes": (checkpoint / name).stat().st_size, "crc32": _crc32(checkpoint / name)}
        for name in _FILES
    }
    text = json.dumps({"files": files, "items": items}, indent=2) + "\n"
    atomic.write(checkpoint / MANIFEST, text)


def verify(checkpoint: pathlib.Path) -> dict[str, int]:
    """Verifies a checkpoint against its manifest; returns the number of items in each table.

    Raises:
      DamagedError: If the checkpoint differs from what was saved.
    """
    try:
        manifest = _read_manifest(checkpoint / MANIFEST)
        for name, noted in manifest["files"].items():
            # The sizes of all files first, because they are cheap to compare.
            size = (checkpoint / name).stat().st_size
            if size != noted["bytes"]:
                raise checkpoint_rotation.DamagedError(
                    f"{name} has {size} bytes instead of {noted['bytes']}"
                )
        for name, noted in manifest["files"].items():
            if _crc32(checkpoint / name) != noted["crc32"]:
                raise checkpoint_rotation.DamagedError(f"the checksum of {name} differs")
        return manifest["items"]
    except FileNotFoundError as error:
        raise checkpoint_rotation.DamagedError(
            f"{pathlib.Path(error.filename).name} is missing"
        ) from None
    except OSError as error:
        raise checkpoint_rotation.DamagedError(f"it cannot be read: {error.strerror}") from None
    except checkpoint_rotation.DamagedError:
        raise
    except Exception as error:  # protobuf raises almost any exception for damage.
        raise checkpoint_rotation.DamagedError(
            f"it cannot be read: {errors.one_line(error, 200)}"
        ) from None


def keys(checkpoint: pathlib.Path, table: str) -> list[int]:
    """Returns the keys of a table's items, oldest first, as Reverb saves them.

    Raises:
      DamagedError: If the checkpoint is incomplete.
      OSError: If the checkpoint cannot be read.
    """
    parse = schema_pb2.PrioritizedItem.FromString
    items = (parse(record) for record in _records(checkpoint / _ITEMS))
    return [item.key for item in items if item.table == table]


def _read_manifest(path: pathlib.Path) -> dict[str, dict]:
    try:
        manifest = json.loads(path.read_text())
        files, items = manifest["files"], manifest["items"]
        numbers = [*items.values(), *(files[name][key] for name in _FILES for key in files[name])]
        is_complete = all({"bytes", "crc32"} <= files[name].keys() for name in _FILES)
        if (
            not is_complete
            or set(files) != set(_FILES)
            or not all(isinstance(n, int) for n in numbers)
        ):
            raise ValueError
        return manifest
    except OSError:
        raise
    except Exception:
        raise checkpoint_rotation.DamagedError(f"{path.name} is damaged") from None


def _crc32(path: pathlib.Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _read_through(checkpoint: pathlib.Path) -> dict[str, int]:
    """Counts the items in each table; decompresses every byte."""
    if not (checkpoint / _DONE).exists():
        raise checkpoint_rotation.DamagedError(f"{_DONE} is missing")
    for name in _COMPRESSED:
        collections.deque(_decompressed(checkpoint / name), maxlen=0)
    parse = schema_pb2.PrioritizedItem.FromString
    return dict(collections.Counter(parse(item).table for item in _records(checkpoint / _ITEMS)))


def _records(path: pathlib.Path) -> Iterator[bytes]:
    """Yields TFRecords: length and its checksum, then data and its checksum."""
    buffer = b""
    for block in _decompressed(path):
        buffer += block
        start = 0
        while len(buffer) - start >= 12:
            end = start + 12 + struct.unpack_from("<Q", buffer, start)[0]
            if end + 4 > len(buffer):
                break
            yield buffer[start + 12 : end]
            start = end + 4
        buffer = buffer[start:]
    if buffer:
        raise checkpoint_rotation.DamagedError(f"{path.name} ends in the middle of a record")


def _decompressed(path: pathlib.Path) -> Iterator[bytes]:
    """Yields a file's contents in blocks; zlib verifies its checksum at the end."""
    stream = zlib.decompressobj()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield stream.decompress(block)
    except zlib.error:
        raise checkpoint_rotation.DamagedError(f"{path.name} cannot be decompressed") from None
    if not stream.eof or stream.unused_data:
        raise checkpoint_rotation.DamagedError(f"{path.name} is incomplete")
