"""Configurations as nested mappings, section -> key -> value."""

import copy
from collections.abc import Mapping
from typing import Any


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
