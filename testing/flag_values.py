"""Configurations as flags would change them."""

from collections.abc import Mapping
from typing import Any

from laser_tf.replay.schemes import registry as schemes
from laser_tf.training import run_config


def changed(config: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a nested configuration with other values under keys "section.key" that it has."""
    known = {section: set(keys) for section, keys in config.items()}
    if scheme := flags.get("replay.scheme"):
        known["replay"] = set(schemes.keys(scheme))
    for key in flags:
        section, name = key.split(".")
        assert name in known[section], key  # else no flag could set it
    return run_config.override(config, flags)
