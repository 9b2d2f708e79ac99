"""Refusing names that nothing has."""

import difflib
from collections.abc import Collection


def check(what: str, name: str, known: Collection[str], example: str = "") -> None:
    """Raises ValueError, with close names, for an unknown one.

    Args:
      what: of what kind the name is, for the message.
      name: to be checked.
      known: all names there are.
      example: shown where no known name is close; without one, all are.
    """
    if name in known:
        return
    close = difflib.get_close_matches(name, known, n=3) or ([] if example else known)
    hint = f"did you mean {' or '.join(close)}?" if close else f"names are like {example!r}"
    raise ValueError(f"there is no {what} {name!r}: {hint}")
