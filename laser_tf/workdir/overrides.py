"""Settings that `launch.train --override` changes in an existing run, and their record.

The key `overrides` of `config.json` lists the changes. The run's current values are under `config`.
"""

import datetime
from collections.abc import Collection, Mapping
from typing import Any

from laser_tf import config_values, errors
from laser_tf.workdir import identity

RECORD = "overrides"  # key of config.json
# Keys of the identity of a run that may change: neither weights nor stored experience depend on
# their values.
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
    """Checks that keys `section.key` of a nested configuration may change during its run.

    Raises:
      ConfigError: For the first other key; the message names all keys that may change.
    """
    flat = config_values.flatten(config)
    named = [key for key in (*KEYS, *identity.CHANGEABLE_KEYS) if key in flat]
    for key in keys:
        if key not in named and not (key in flat and _section(key) in identity.CHANGEABLE_SECTIONS):
            others = [f"{section}.*" for section in identity.CHANGEABLE_SECTIONS]
            raise errors.ConfigError(
                f"--override must name a setting that may change during a run, got {key}. Use one "
                f"of {', '.join((*named, *others))}, or start another run."
            )


def _section(key: str) -> str:
    return key.partition(".")[0]


def flags(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Returns the flags that change a run to another configuration; "" if none do."""
    differing = identity.find_differences(before, now)
    if not set(differing) <= set(KEYS) - {identity.LENGTH}:
        return ""
    return " ".join(f"--override={key}={value}" for key, (_, value) in differing.items())


def in_effect(content: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the overridden values that replace the values of a nested configuration.

    The command that created a run still has the values of the run's start. Any other value of an
    overridden key stays, so that it is rejected as a different run.

    Args:
      content: Content of `config.json`.
      config: Configuration of the command that resumes the run, nested.
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
    """Adds the keys whose values differ to the record of changes.

    Args:
      content: Content of `config.json`.
      before: Configuration of the run, nested.
      now: New configuration of the run, nested.
      keys: Keys `section.key` that may differ.

    Returns:
      The content with the changes, whose `env_frames` is None, and `before` with the new values of
      all keys but `run.env_frames`.
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
    return (
        content | {RECORD: [*content.get(RECORD, ()), entry]},
        config_values.override(before, accepted),
    )


def complete(content: dict[str, Any], env_frames: int) -> list[dict[str, Any]]:
    """Sets the `env_frames` of new changes in the content of `config.json` and returns them."""
    entries = [entry for entry in content.get(RECORD, ()) if entry["env_frames"] is None]
    for entry in entries:
        entry["env_frames"] = env_frames
    return entries
