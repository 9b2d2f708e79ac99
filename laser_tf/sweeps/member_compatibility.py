"""Checks which members of a sweep can share replay, or copy each other's weights."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from laser_tf import config_values, errors
from laser_tf.networks import trunk_config
from laser_tf.training import run_config

Members = Mapping[str, run_config.RunConfig]  # Name -> configuration.

# Keys of the sections environment and replay in which members on one replay may differ.
_MAY_DIFFER = (
    "environment.num_envs",
    "environment.num_threads",
    "environment.num_workers",
    "replay.batch_size",
    "replay.replay_fraction",
    "replay.replay_ratio",
)
# Replay holds the parameters of a Gaussian, and its sample before squashing or clipping.
_STORED_KEYS = ("agent.core", "agent.core_size", "agent.continuous_policy")
# Keys that, with the section environment, decide which weights a member can copy. A member without
# such a key has None.
_AGENT_KEYS = (
    "name", "hidden_units", "advantage_units", "bins", "v_min", "v_max", "distributional",
    "continuous_policy", "popart", "pixel_control_cell",
)  # fmt: skip
_TRUNK_KEYS = {field.name for field in dataclasses.fields(trunk_config.TrunkConfig)}
_WEIGHT_KEYS = (
    *("learner.optimizer", "replay.frame_stack"),
    *(f"agent.{key}" for key in (*_AGENT_KEYS, *sorted(_TRUNK_KEYS - {"core_memory_span"}))),
)


def check_shareable(members: Members) -> None:
    """Raises ConfigError if members cannot share replay."""
    _check_same(
        members,
        _shared_values,
        "Members on one replay need the same; sweep other keys, or use shared_replay=false.",
    )
    first = next(iter(members.values()))
    if first.replay.uses_priorities:
        raise errors.ConfigError(
            "config.replay: priority_exponent must be 0 on a shared replay, because the priorities "
            "of one member mean nothing to another (LASER, section 5.2), got "
            f"{first.replay.sampler_exponent}. Use 0, or shared_replay=false."
        )
    if first.agent.core != "none" and first.replay.core_state == "stored":
        raise errors.ConfigError(
            "config.replay: core_state must be 'zero' on a shared replay, because the states of "
            "one member mean nothing to another (LASER, section A.2), got 'stored'. Use zero, "
            "shared_replay=false, or a replay.scheme that recomputes states."
        )


def check_copyable(members: Members) -> None:
    """Raises ConfigError if members of a population cannot copy each other."""
    _check_same(
        members,
        _weight_values,
        "Members of a population are ranked by their returns and copy each other; sweep other "
        "keys, or use population.method='none'.",
    )


def _check_same(
    members: Members, values_of: Callable[[run_config.RunConfig], dict[str, Any]], remedy: str
) -> None:
    """Raises ConfigError for the first key in which a member differs from the first member."""
    (first, reference), *others = ((name, values_of(member)) for name, member in members.items())
    for name, values in others:
        for key, value in values.items():
            if value != reference[key]:
                raise errors.ConfigError(
                    f"{key} is {reference[key]!r} for {first}, but {value!r} for {name}. {remedy}"
                )


def _shared_values(config: run_config.RunConfig) -> dict[str, Any]:
    flat = _flatten(config)
    shared = _of_sections(flat, "environment.", "replay.")
    shared |= {key: flat.get(key) for key in _STORED_KEYS}
    shared["replay's table"] = config.replay.replay_table or "none"
    return shared


def _weight_values(config: run_config.RunConfig) -> dict[str, Any]:
    flat = _flatten(config)
    values = _of_sections(flat, "environment.") | {key: flat.get(key) for key in _WEIGHT_KEYS}
    values["agent.pixel_control_cost above 0"] = flat.get("agent.pixel_control_cost", 0.0) > 0
    return values


def _flatten(config: run_config.RunConfig) -> dict[str, Any]:
    return config_values.flatten(dataclasses.asdict(config))


def _of_sections(flat: Mapping[str, Any], *sections: str) -> dict[str, Any]:
    return {
        key: value
        for key, value in flat.items()
        if key.startswith(sections) and key not in _MAY_DIFFER
    }
