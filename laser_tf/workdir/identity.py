"""Which configurations are the same run's: what tells runs apart, and what may change."""

from collections.abc import Mapping
from typing import Any

from laser_tf import config_values

LENGTH = "run.env_frames"
# Sections and keys that a resumed run may change, because nothing that it learns depends on them.
# Every other key identifies the run. A key that decides how old the experience of an update is
# (num_envs, queue_capacity, wait_seconds) or how it is rounded (compute_dtype) identifies it too.
CHANGEABLE_SECTIONS = ("cluster",)
CHANGEABLE_KEYS = (
    "environment.dataset_path",
    "environment.level_cache",
    "environment.max_broken_episodes",
    "environment.num_threads",
    "environment.num_workers",
    "environment.reply_seconds",
    "learner.jit_compile",
    "learner.non_finite_limit",
    "learner.replicas",
    "replay.addresses",
    "run.checkpoint_minutes",
    "run.evaluate_every_env_frames",
    "run.evaluation_episodes",
    "run.evaluation_episodes_beside",
    "run.metrics_seconds",
    "run.replay_checkpoint_minutes",
    "run.replay_port",
)


def completed(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A nested configuration, with the default of each key that it does not name.

    A run that was begun before there was a key has none of it, and did what its default does.
    """
    given = {name: config.get(name, {}) for name in defaults}
    # A section that is none, in a damaged file, differs from all sections as it is.
    sections = {name: keys for name, keys in given.items() if isinstance(keys, Mapping)}
    return {**config, **{name: {**defaults[name], **keys} for name, keys in sections.items()}}


def is_longer(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether a run is the one before with more frames; nested configurations."""
    before, now = identity(before), identity(now)
    more = now.pop(LENGTH, 0) > before.pop(LENGTH, 0)
    return more and before == now


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What makes two nested configurations those of different runs, in words; [] for one run."""
    before, now = identity(before), identity(now)
    return [
        f"{key} (there {before.get(key)!r}, now {now.get(key)!r})"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    ]


def identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """What tells a nested configuration from another run's: `section.key` -> value."""
    flat = config_values.flatten(config)
    return {
        key: value
        for key, value in flat.items()
        if key not in CHANGEABLE_KEYS and key.partition(".")[0] not in CHANGEABLE_SECTIONS
    }
