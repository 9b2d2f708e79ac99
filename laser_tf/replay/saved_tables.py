"""Replay checkpoints on disk: what Reverb wrote, a manifest beside it, and whether both agree.

Reverb trusts its files: a short one comes back as fewer items, or ends the process. A checkpoint is
a folder, named after its time, with Reverb's files and `manifest.json`:

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

MANIFEST = "manifest.json"
_DONE, _ITEMS = "DONE", "items.tfrecord"
_COMPRESSED = ("tables.tfrecord", "chunks.tfrecord")
_FILES = (_DONE, _ITEMS, *_COMPRESSED)
_BLOCK = 1 << 20  # bytes read at once


class DamagedError(ValueError):
    """A checkpoint is not what was saved; the message says in what."""


def find(root: pathlib.Path) -> pathlib.Path | None:
    """The newest checkpoint in a folder of checkpoints; None where there is none."""
    folders = [path for path in root.glob("*") if path.is_dir()]
    return max(folders, default=None)


def write_manifest(checkpoint: pathlib.Path) -> None:
    """Notes what a checkpoint holds, once it is known to be whole.

    Raises:
      DamagedError: if Reverb's files are not whole.
      OSError: if they cannot be read, or the manifest not be written.
    """
    # Reverb misses an error in closing a file, where a full disk shows for small ones.
    items = _read_through(checkpoint)
    files = {
        name: {"bytes": (checkpoint / name).stat().st_size, "crc32": _crc32(checkpoint / name)}
        for name in _FILES
    }
    text = json.dumps({"files": files, "items": items}, indent=2) + "\n"
    (checkpoint / MANIFEST).write_text(text)


def verify(checkpoint: pathlib.Path) -> dict[str, int]:
    """The items in each table of a checkpoint, where everything is as it was saved.

    One without a manifest, of an earlier version, is decompressed instead: its own checksums cover
    each of Reverb's files.

    Raises:
      DamagedError: if anything is not.
    """
    try:
        if not (checkpoint / MANIFEST).exists():
            return _read_through(checkpoint)
        manifest = _read_manifest(checkpoint / MANIFEST)
        for name, noted in manifest["files"].items():
            # The size first: it costs nothing.
            size = (checkpoint / name).stat().st_size
            if size != noted["bytes"]:
                raise DamagedError(f"{name} has {size} bytes instead of {noted['bytes']}")
        for name, noted in manifest["files"].items():
            if _crc32(checkpoint / name) != noted["crc32"]:
                raise DamagedError(f"{name} has another checksum than it was saved with")
        return manifest["items"]
    except FileNotFoundError as error:
        raise DamagedError(f"{pathlib.Path(error.filename).name} is missing") from None
    except OSError as error:
        raise DamagedError(f"it cannot be read: {error.strerror}") from None
    except DamagedError:
        raise
    except Exception as error:  # Damage shows as almost any error of protobuf's.
        raise DamagedError(f"it cannot be read: {errors.one_line(error, 200)}") from None


def keys(checkpoint: pathlib.Path, table: str) -> list[int]:
    """The keys of a table's items, oldest first: Reverb saves them in the order of their insertion.

    Raises:
      DamagedError: if the checkpoint is not whole.
      OSError: if it cannot be read.
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
        raise DamagedError(f"{path.name} is damaged") from None


def _crc32(path: pathlib.Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _read_through(checkpoint: pathlib.Path) -> dict[str, int]:
    """The items in each table, after every byte has been decompressed."""
    if not (checkpoint / _DONE).exists():
        raise DamagedError(f"{_DONE} is missing")
    for name in _COMPRESSED:
        collections.deque(_decompressed(checkpoint / name), maxlen=0)
    parse = schema_pb2.PrioritizedItem.FromString
    return dict(collections.Counter(parse(item).table for item in _records(checkpoint / _ITEMS)))


def _records(path: pathlib.Path) -> Iterator[bytes]:
    """TFRecord's framing: a length and its checksum, then data and theirs."""
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
        raise DamagedError(f"{path.name} ends in the middle of a record")


def _decompressed(path: pathlib.Path) -> Iterator[bytes]:
    """A file's contents in blocks; zlib compares its own checksum at the end."""
    stream = zlib.decompressobj()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield stream.decompress(block)
    except zlib.error:
        raise DamagedError(f"{path.name} cannot be decompressed") from None
    if not stream.eof or stream.unused_data:
        raise DamagedError(f"{path.name} is not whole")
