"""What ends a command with one line instead of a traceback."""

import errno
import re

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class UserError(RuntimeError):
    """The user can act on it: the message, one line, says what was refused, why and what to do."""


class ConfigError(UserError, ValueError):
    """A value that the user gave cannot be used.

    A plain `ValueError` is a bug: commands print its traceback.
    """


class MissingPackageError(UserError, ImportError):
    """An optional package is not installed; the message names the command that installs it."""


def printable(text: str) -> str:
    """Returns the text with lone surrogates escaped, so that every stream can encode it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def first_line(error: BaseException) -> str:
    """What an error of TensorFlow's or another says, as a line of text."""
    text = re.sub(
        r"\{\{.*?\}\}|\[Op:.*?\]", "", printable(str(error))
    ).strip()  # TensorFlow's graph names
    return text.splitlines()[0][:400].strip() if text else type(error).__name__


def file_remedy(error: BaseException) -> str:
    """Returns the remedy of a failed write, e.g. "free disk space"."""
    number = getattr(error, "errno", None)
    if number in _FULL:
        return "free disk space"
    if number in _FORBIDDEN:
        return "make it writable"
    return "check its path, permissions and disk"


def one_line(error: BaseException, most: int | None = None) -> str:
    """All that an error says, in one line of at most so many characters; else its type's name."""
    return " ".join(printable(str(error)).split())[:most] or type(error).__name__
