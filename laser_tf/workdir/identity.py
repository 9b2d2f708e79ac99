"""Identity of a run: the configuration keys that distinguish it from other runs."""

from collections.abc import Mapping
from typing import Any

from laser_tf import config_values

LENGTH = "run.env_frames"
# A section and keys that a resumed run may change, because learning does not depend on them. Every
# other key identifies the run, including keys that determine the age of experience (num_envs,
# queue_capacity, wait_seconds) or its rounding (compute_dtype).
CHANGEABLE_SECTION = "cluster."
CHANGEABLE_KEYS = (
    "environment.dataset_path",
    "environment.level_cache",
    "environment.max_broken_episodes",
    "environment.num_threads",
    "environment.num_workers",
    "environment.pickled_function",
    "environment.reply_seconds",
    "learner.jit_compile",
    "learner.non_finite_limit",
    "learner.num_devices",
    "learner.spare_cores",
    "replay.address",
    "replay.in_checkpoints",
    "run.checkpoint_minutes",
    "run.evaluate_every_env_frames",
    "run.evaluation_episodes",
    "run.periodic_evaluation_episodes",
    "run.metrics_seconds",
    "run.replay_checkpoint_minutes",
    "run.replay_port",
)
_MAX_SHOWN_KEYS = 5


def with_defaults(
    config: Mapping[str, Any], defaults: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Returns a nested configuration with default values for missing keys."""
    return {**config, **{name: keys | config.get(name, {}) for name, keys in defaults.items()}}


def only_extends(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Returns whether nested configurations differ only by more env frames in `now`."""
    before, now = identifying_values(before), identifying_values(now)
    more = now.pop(LENGTH, 0) > before.pop(LENGTH, 0)
    return more and before == now


def describe_differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Describes the keys in which two runs differ; returns "" for the same run."""
    differing = [
        f"{key} (there {old!r}, now {new!r})"
        for key, (old, new) in find_differences(before, now).items()
    ]
    more = len(differing) - _MAX_SHOWN_KEYS
    shown = ", ".join(differing[:_MAX_SHOWN_KEYS])
    return f"{shown} and {more} more keys" if more > 0 else shown


def find_differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns `section.key` -> both values of the identifying keys in which two runs differ."""
    before, now = identifying_values(before), identifying_values(now)
    return {
        key: (before.get(key), now.get(key))
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    }


def identifying_values(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `section.key` -> value of all keys that identify a run."""
    return {
        key: value
        for key, value in config_values.flatten(config).items()
        if key not in CHANGEABLE_KEYS and not key.startswith(CHANGEABLE_SECTION)
    }
