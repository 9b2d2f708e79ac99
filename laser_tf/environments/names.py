"""Checks of names, with suggestions."""

import difflib
import re
from collections.abc import Collection

from laser_tf import errors

_MAX_SUGGESTIONS = 3
_MIN_PART_LENGTH = 3  # characters; shorter texts are part of too many names


def check(what: str, name: str, known: Collection[str], example: str = "") -> str:
    """Returns a known name, and raises ValueError, with close names, for an unknown one.

    Args:
      what: Category of the name, for the message.
      name: Name to check.
      known: All valid names.
      example: Shown if no valid name is close; by default, all names are shown.
    """
    if name in known:
        return name
    close = _close(str(name), known)
    if not close and not example and len(known) <= _MAX_SUGGESTIONS:
        close = list(known)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = f"names are like {example!r}" if example else f"use one of {', '.join(known)}"
    raise errors.ConfigError(f"there is no {what} {name!r}: {hint}")


def _close(name: str, known: Collection[str]) -> list[str]:
    """Returns up to `_MAX_SUGGESTIONS` known names that resemble or contain a name."""
    close = difflib.get_close_matches(name, known, n=_MAX_SUGGESTIONS)
    if not close and len(name) >= _MIN_PART_LENGTH:
        close = [known_name for known_name in known if name.lower() in known_name.lower()]
    return close[:_MAX_SUGGESTIONS]


def of_gymnasium_id(name: str, namespace: str, known: Collection[str]) -> str:
    """The known name behind a gymnasium id: "ALE/MsPacman-v5" is "ms_pacman".

    Args:
      name: an id, or anything else, which is returned as it is.
      namespace: Namespace of the id, e.g. "ALE".
      known: names with underscores between their words.
    """
    match = re.fullmatch(rf"{namespace}/(\w+)-v\d+", name)
    joined = {known_name.replace("_", ""): known_name for known_name in known}
    return joined.get(match[1].lower(), name) if match else name
