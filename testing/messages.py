"""Checks that a message names keys and values in any wording."""

import contextlib
import re
import unittest
from collections.abc import Iterator

from laser_tf import errors


def assert_names(message: object, *values: object) -> None:
    """Asserts that a message contains every given key and value as a whole word or number.

    Args:
      message: Text, or an exception.
      *values: Keys and values; compared as texts.
    """
    text = str(message)
    missing = [str(value) for value in values if not _pattern(str(value)).search(text)]
    if missing:
        raise AssertionError(f"{missing} not named in {text!r}")


@contextlib.contextmanager
def raises(
    error: type[BaseException], *values: object
) -> Iterator[unittest.case._AssertRaisesContext]:
    """Asserts that the body raises an error whose message names every given key and value.

    The message of an `errors.UserError` must be one line.

    Yields:
      The context of `assertRaises`, whose `exception` is set afterwards.
    """
    with unittest.TestCase().assertRaises(error) as caught:
        yield caught
    assert_names(caught.exception, *values)
    if isinstance(caught.exception, errors.UserError) and "\n" in str(caught.exception):
        raise AssertionError(f"more than one line: {str(caught.exception)!r}")


@contextlib.contextmanager
def warns(*values: object) -> Iterator[None]:
    """Asserts that the body logs one warning, which names every given key and value."""
    with unittest.TestCase().assertLogs(level="WARNING") as logs:
        yield
    assert len(logs.output) == 1, logs.output
    assert_names(logs.output[0], *values)


def _pattern(value: str) -> re.Pattern[str]:
    """Returns a pattern of a value that is no part of a longer word or number."""
    before = r"(?<!\w)(?<!\d\.)" if re.match(r"\w", value) else ""
    after = r"(?!\w)(?!\.\d)" if re.search(r"\w\Z", value) else ""
    return re.compile(before + re.escape(value) + after)
