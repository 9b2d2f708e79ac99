"""Files that are there in full or not at all, whatever ends the process or the machine."""

import contextlib
import os
import pathlib


def write(path: pathlib.Path, content: str | bytes) -> None:
    """Writes a file in one step; a failure leaves what was there before, and nothing else.

    Raises:
      OSError: if it cannot be written.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            sync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def try_write(path: pathlib.Path, content: str) -> None:
    """The same for what may be missing: nothing happens where it cannot be written."""
    with contextlib.suppress(OSError):
        write(path, content)


def sync(descriptor: int) -> None:
    """Waits until a file is on the disk, or a power cut could leave its new name with nothing."""
    os.fsync(descriptor)
