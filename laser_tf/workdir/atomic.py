"""Atomic writes: a file is complete or absent, even after a crash of the process or the machine."""

import contextlib
import errno
import os
import pathlib
from collections.abc import Iterator
from typing import BinaryIO


def write(path: pathlib.Path, content: str | bytes) -> None:
    """Writes a file atomically. After a failure the previous file is unchanged.

    Args:
      path: File to create or replace.
      content: Text, which is encoded as UTF-8, or bytes.

    Raises:
      OSError: If the file cannot be written.
    """
    with open_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def try_write(path: pathlib.Path, content: str) -> None:
    """Writes an optional file atomically; ignores errors of the file system."""
    with contextlib.suppress(OSError):
        write(path, content)


@contextlib.contextmanager
def open_file(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Opens a file for writing, which replaces `path` at the end of the context.

    After an exception the previous file is unchanged and the new content is deleted. Concurrent
    writers of one path do not share a temporary file.

    Args:
      path: File to create or replace.

    Yields:
      The open file, positioned at its start.

    Raises:
      OSError: If the file cannot be written.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace(source: pathlib.Path, target: pathlib.Path) -> None:
    """Renames a file or directory once its content is on the disk.

    Without fsync, a power failure could leave the new name with empty content.

    Args:
      source: File, or directory whose files are written.
      target: New name on the same file system. An existing file or empty directory is replaced.

    Raises:
      OSError: If the content cannot be written or `source` cannot be renamed.
    """
    sync(source)
    source.replace(target)
    _sync_one(target.parent)


def sync(path: pathlib.Path) -> None:
    """Flushes a file, or a directory with all its files, to the disk.

    Raises:
      OSError: If the content cannot be written.
    """
    if path.is_dir():
        for child in path.iterdir():
            sync(child)
    _sync_one(path)


def _sync_one(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot flush a directory.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(descriptor)
