"""Exceptions that end a command with a one-line message instead of a traceback."""

import re


class UserError(RuntimeError):
    """An error that the user can fix. Its message is one line with the reason and the remedy."""


class StoppedError(RuntimeError):
    """A stop was requested while the process waited for another one."""


class ConfigError(UserError, ValueError):
    """An invalid value from the user. A plain `ValueError` is a bug and prints a traceback."""


class MissingPackageError(UserError, ImportError):
    """An optional package is missing; the message names the command that installs it."""


def printable(text: str) -> str:
    """Returns the text with lone surrogates escaped, so that every stream can encode it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def first_line(error: BaseException) -> str:
    """Returns the first line of an error message, without names of TensorFlow graph nodes."""
    text = re.sub(r"\{\{.*?\}\}|\[Op:.*?\]", "", printable(str(error))).strip()
    return text.splitlines()[0][:400].strip() if text else type(error).__name__


def one_line(error: BaseException, max_length: int | None = None) -> str:
    """Returns the message on one line, cut to `max_length`, or the error type if it is empty."""
    return " ".join(printable(str(error)).split())[:max_length] or type(error).__name__
