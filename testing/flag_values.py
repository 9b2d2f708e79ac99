"""Configurations as flags would change them."""

from collections.abc import Mapping
from typing import Any

from laser_tf import config_values


def changed(config: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a nested configuration with other values under keys "section.key" that it has."""
    for key in flags:
        section, name = key.split(".")
        assert name in config[section], key  # else no flag could set it
    return config_values.changed(config, flags)
