"""Search spaces: texts such as `log_uniform(1e-4, 1e-2)`, and checks before a search starts."""

import ast
import re
from collections.abc import Mapping
from typing import Any

from laser_tf import config_values, errors
from laser_tf.sweeps import sweep_config

DISTRIBUTIONS = ("grid", "choices", "uniform", "log_uniform")
FORM = "SECTION.KEY=log_uniform(1e-4, 1e-2), or grid, choices or uniform in place of log_uniform"
_TEXT = re.compile(r"\s*(\w+)\((.+)\)\s*", re.DOTALL)
# Keys of the section `sweep` that apply to a search.
_OF_SEARCHES = ("choices", "uniform", "log_uniform", "seed")
_PERIOD = "run.evaluate_every_env_frames"


def add(sweep: dict[str, Any], texts: Mapping[str, str]) -> None:
    """Adds distributions to a section `sweep`; they replace other distributions of their keys.

    `texts` are e.g. "choices(adam, rmsprop)" by `section.key`.

    Raises:
      ConfigError: If a text or a key has another form, or a part of the section has no keys.
    """
    for part in sweep_config.PARTS:
        _keys(sweep, part, part)
    for key, text in texts.items():
        section, dot, name = key.partition(".")
        match = _TEXT.fullmatch(text)
        if not dot or not match or match[1] not in DISTRIBUTIONS:
            raise errors.ConfigError(f"--search_space must be {FORM}, got {key}={text}.")
        for part in sweep_config.PARTS:
            _keys(sweep.get(part, {}), section, f"{part}.{section}").pop(name, None)
        sweep.setdefault(match[1], {}).setdefault(section, {})[name] = _parse_values(match[2])


def _keys(values: Mapping[str, Any], name: str, path: str) -> dict[str, Any]:
    """Returns the keys with values under a name of the section `sweep`; {} if it is missing."""
    keys = values.get(name, {})
    if not isinstance(keys, dict):
        raise errors.ConfigError(
            f"config.sweep.{path} must have keys with values, got {keys!r}. Leave it out, or use "
            "--search_space."
        )
    return keys


def _parse_values(text: str) -> tuple[Any, ...]:
    try:
        return ast.literal_eval(f"({text},)")
    except config_values.LITERAL_ERRORS:  # E.g. texts without quotes.
        return tuple(config_values.parse_value(value.strip()) for value in text.split(","))


def check_keys(keys: Mapping[str, Any]) -> None:
    """Raises ConfigError for a key that has no effect in a search."""
    for key in keys:
        section, name = key.split(".")[:2]
        if section == "population" or section == "sweep" and name not in _OF_SEARCHES:
            raise errors.ConfigError(
                f"config.{key} must be left out with --search, got {keys[key]!r}. It applies to "
                "members that train at the same time; --trials is the number of trials."
            )


def check_trials(space: sweep_config.Config, base: Mapping[str, Mapping[str, Any]]) -> None:
    """Checks that a search has keys to vary, and the configurations that it may try.

    Raises:
      ConfigError: For an unknown key, or a value that no run with the configuration `base` accepts.
    """
    if point := next(space.points()):
        raise errors.ConfigError(
            f"--search_space must have choices instead of a grid with --search, got a grid of "
            f"{', '.join(point)}. Use choices(...)."
        )
    for number, values in enumerate(space.members()):
        if not values:
            raise errors.ConfigError(
                "--search_space must be given with --search. Use e.g. "
                "--search_space='learner.learning_rate=log_uniform(1e-4, 1e-2)'."
            )
        sweep_config.check_swept(values)
        if _PERIOD in values:
            raise errors.ConfigError(
                f"--search_space must not vary {_PERIOD}, got {values[_PERIOD]!r}, because trials "
                f"are compared at the same env frames. Set --config.{_PERIOD} for all trials."
            )
        sweep_config.parse_member(f"trial_{number:03d}", base, values)
    for part in (space.choices, space.uniform, space.log_uniform):
        for key, values in config_values.flatten(part).items():
            for value in values:
                sweep_config.parse_member(f"a value of {key}", base, {key: value})
