"""Choices of agent, suite and replay scheme, which decide the other keys of their sections."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from laser_tf import config_values, errors
from laser_tf.agents import registry
from laser_tf.environments import suites
from laser_tf.replay.schemes import registry as schemes

# Section -> the key that chooses its other keys, and the registry of the values of that key.
CHOICES = {
    "agent": ("name", registry),
    "environment": ("suite", suites),
    "replay": ("scheme", schemes),
}
_FRAME_STACK = "replay.frame_stack"
# Keys of every suite whose values fit the tasks of one suite.
_OF_TASKS = ("environment.action_repeat", "environment.reward_scales", _FRAME_STACK)


def chosen_class(section: str, name: Any) -> Any:
    """Returns the dataclass of an agent, suite or replay scheme; raises ConfigError if unknown."""
    _, known = CHOICES[section]
    with in_section(section):
        return known.config_class(name)


@contextlib.contextmanager
def in_section(name: str) -> Iterator[None]:
    """Names a section in the ConfigErrors of the `with` block."""
    try:
        yield
    except errors.ConfigError as error:  # Any other ValueError is a bug, also of user code.
        raise errors.ConfigError(f"config.{name}: {error}") from None


def override(
    values: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Returns a copy of nested values with other values under keys `section.key`.

    Another agent, suite or scheme drops the values of keys that it lacks or has with another type.
    Another suite also drops the action repeat and the reward scales, and stacks no frames. Dropped
    values are logged in one line. For the errors see `chosen_class`.
    """
    result = config_values.override(values, {})
    chosen, dropped = [], []
    for section, (choice, known) in CHOICES.items():
        before = values.get(section, {}).get(choice, known.DEFAULT)
        now = changes.get(f"{section}.{choice}", before)
        if now != before:
            chosen.append(f"{section}.{choice}={now}")
            dropped += _keys_to_drop(values, section, before, now)
    dropped = [key for key in dropped if key not in changes]
    for key in dropped:
        section, _, name = key.partition(".")
        del result[section][name]
        if key == _FRAME_STACK:
            result[section][name] = 1
    if dropped:
        logging.info("Dropped values that do not fit %s: %s", ", ".join(chosen), ", ".join(dropped))
    return config_values.override(result, changes)


def _keys_to_drop(
    values: Mapping[str, Mapping[str, Any]], section: str, before: Any, now: Any
) -> list[str]:
    old, new = (chosen_class(section, name).__dataclass_fields__ for name in (before, now))
    kept = {key for key in old.keys() & new.keys() if old[key].type == new[key].type}
    dropped = [f"{section}.{key}" for key in values.get(section, {}) if key not in kept]
    if section == "environment":
        flat = config_values.flatten(values)
        dropped += [key for key in _OF_TASKS if flat.get(key) not in (None, 1, (), [])]
    return dropped
