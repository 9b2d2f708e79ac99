"""Configurations as nested mappings, section -> key -> value."""

import ast
import copy
from collections.abc import Mapping
from typing import Any

_WORDS = {"true": True, "false": False}  # as flags of other commands have them


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with keys `section.key`."""
    flat = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def changed(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of nested dictionaries with other values under keys `section.key`."""
    result = copy.deepcopy(dict(config))
    for key, value in changes.items():
        *sections, name = key.split(".")
        section = result
        for part in sections:
            section = section[part]
        section[name] = value
    return result


def parse_value(text: str) -> Any:
    """A value as Python writes it, or true or false; what is neither is taken as a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return _WORDS.get(text.lower(), text)
