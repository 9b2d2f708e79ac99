"""Operations on configurations as nested mappings, section -> key -> value."""

import ast
import copy
import difflib
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from laser_tf import errors

LITERAL_ERRORS = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)  # of `ast`
_WORDS = {"true": True, "false": False}  # accepted like other command-line flags do


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested mappings into one dictionary with keys `section.key`."""
    flat = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def override(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of `config` with new values from `changes`, by key `section.key`.

    Adds missing sections. Raises ConfigError for a key below a value, e.g. `learner.optimizer.x`.
    """
    result = copy.deepcopy(dict(config))
    for key, value in changes.items():
        *sections, name = key.split(".")
        section = result
        for part in sections:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):
                raise errors.ConfigError(
                    f"{key} must be SECTION.KEY, but {part} has the value {section!r}. Leave out "
                    "the rest of the key."
                )
        section[name] = value
    return result


def parse_value(text: str) -> Any:
    """Parses a Python literal, or true or false; returns any other text unchanged."""
    try:
        return ast.literal_eval(text)
    except LITERAL_ERRORS:
        return _WORDS.get(text.lower(), text)


def parse_text(text: str, expected: Any) -> Any:
    """Parses the text of a flag for a field with the type `expected`.

    A field that may be a text gets it unchanged. One value of a tuple needs no parentheses.
    """
    if str in (expected, *typing.get_args(expected)) and typing.get_origin(expected) is not tuple:
        return text
    value = parse_value(text)
    if expected is float and type(value) is int:
        return float(value)
    is_single = typing.get_origin(expected) is tuple and not isinstance(value, tuple | list)
    return (value,) if is_single else value


def check_name(what: str, name: str, known: Collection[str], example: str = "") -> str:
    """Returns a known name; raises ConfigError with close names, or else `example` or all names."""
    if name in known:
        return name
    remedy = hint(str(name or ""), known, example)
    raise errors.ConfigError(f"{what} must be a known name, got {name!r}: {remedy}")


def hint(name: str, known: Iterable[str], example: str = "") -> str:
    """Returns close names for an unknown name, or else an example or all known names."""
    close = close_names(name, known) if name else []
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"names are like {example!r}" if example else f"use one of {', '.join(known)}"


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Returns up to three known names that `name` abbreviates, or else resembles."""
    names = list(known)
    abbreviated = [
        full
        for full in names
        if full.startswith(name) or name == "".join(word[:1] for word in full.split("_"))
    ]
    return abbreviated[:3] or difflib.get_close_matches(name, names, n=3)
