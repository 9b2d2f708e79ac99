"""Settings that `launch.train --override` changes in an existing run, and their record.

The key `overrides` of `config.json` lists the changes. The run's current values are under `config`.
"""

import datetime
from collections.abc import Collection, Mapping
from typing import Any

from laser_tf import config_values, errors
from laser_tf.workdir import identity

RECORD = "overrides"  # key of config.json
# Keys of the identity of a run that may change: the shapes of weights and of stored experience do
# not depend on their values.
KEYS = (
    "agent.entropy_cost",
    "agent.kl_threshold",
    "environment.num_envs",
    "learner.gradient_clip",
    "learner.learning_rate",
    "learner.learning_rate_schedule",
    "learner.rmsprop_epsilon",
    identity.LENGTH,
)


def check(keys: Collection[str], config: Mapping[str, Any]) -> None:
    """Raises ConfigError if a key `section.key` of a nested configuration may not change."""
    flat = config_values.flatten(config)
    named = [key for key in (*KEYS, *identity.CHANGEABLE_KEYS) if key in flat]
    for key in keys:
        is_in_section = key in flat and key.startswith(identity.CHANGEABLE_SECTION)
        if key not in named and not is_in_section:
            raise errors.ConfigError(
                f"--override must name a setting that may change during a run, got {key}. Use one "
                f"of {', '.join(named)}, {identity.CHANGEABLE_SECTION}*, or start another run."
            )


def flags(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Returns the flags that change a run to another configuration; "" if none do."""
    differing = identity.find_differences(before, now)
    if not set(differing) <= set(KEYS) - {identity.LENGTH}:
        return ""
    return " ".join(f"--override={key}={value}" for key, (_, value) in differing.items())


def in_effect(content: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values in a `config.json` that replace those of a command's `config`.

    The command that created the run still has the values of the run's start. A command with a third
    value of such a key is rejected later as a different run.
    """
    first: dict[str, Any] = {}
    for entry in content.get(RECORD, ()):
        for key, change in entry["changes"].items():
            first.setdefault(key, change["before"])
    current, given = config_values.flatten(content["config"]), config_values.flatten(config)
    return {
        key: current[key]
        for key, before in first.items()
        if key in KEYS and given.get(key) == before != current[key]
    }


def record(
    content: dict[str, Any], before: dict[str, Any], now: dict[str, Any], keys: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Adds those of the `keys` whose values differ to the record of changes.

    Returns:
      The content of `config.json` with the changes, whose `env_frames` is None, and the nested
      configuration `before` with the new values of all keys but `run.env_frames`.
    """
    old, new = config_values.flatten(before), config_values.flatten(now)
    changes = {
        key: {"before": old.get(key), "now": new[key]} for key in keys if old.get(key) != new[key]
    }
    if not changes:
        return content, before
    time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entry = {"env_frames": None, "time": time, "changes": changes}
    accepted = {key: new[key] for key in changes if key != identity.LENGTH}
    content = content | {RECORD: [*content.get(RECORD, ()), entry]}
    return content, config_values.override(before, accepted)


def complete(content: dict[str, Any], env_frames: int) -> list[dict[str, Any]]:
    """Sets the `env_frames` of new changes in the content of `config.json` and returns them."""
    entries = [entry for entry in content.get(RECORD, ()) if entry["env_frames"] is None]
    for entry in entries:
        entry["env_frames"] = env_frames
    return entries
