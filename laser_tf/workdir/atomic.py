"""Atomic writes: a file is complete or absent, even after a crash of the process or the machine."""

import contextlib
import errno
import os
import pathlib


def write(path: pathlib.Path, content: str | bytes) -> None:
    """Writes text, as UTF-8, or bytes to a file; an OSError names it and leaves it unchanged."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError):
            error.filename = str(path)  # Errors of a full disk name no file.
        with contextlib.suppress(OSError):  # E.g. of a read-only file system.
            temporary.unlink()
        raise


def replace(source: pathlib.Path, target: pathlib.Path) -> None:
    """Renames a file or directory once its content is on the disk.

    Replaces a file or an empty directory at `target`, which is on the same file system. Without
    fsync, a power failure could leave the new name with empty content.
    """
    sync(source)
    source.replace(target)
    _sync_one(target.parent)


def sync(path: pathlib.Path) -> None:
    """Flushes a file, or a directory with all its files, to the disk."""
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
