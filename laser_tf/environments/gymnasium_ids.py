"""Checks ids of gymnasium's registry and names the suite of ids that belong to another one."""

import re
from collections.abc import Mapping
from typing import Any

from laser_tf.environments import faults, names, suites

# Suite -> flags of launch.train that choose it.
_TRAIN_FLAGS = {
    "atari": "--config=configs/laser.py:atari",
    "minatar": "--config=configs/laser.py:minatar",
    "vizdoom": "--config=configs/laser.py:vizdoom",
    "minigrid": "--config=configs/laser.py:babyai",
    "dm_control": "--config=configs/laser.py:control --config.environment.suite=dm_control",
}
_ATARI = re.compile(r"(?:ALE/)?(\w+?)(?:NoFrameskip|Deterministic)?-v\d+")
_MINIGRID = ("MiniGrid-", "BabyAI-")


def check(package: str, name: str, registry: Mapping[str, Any]) -> None:
    """Checks that an id is registered and that agents can read its environment.

    Args:
      package: Package that was imported to register the id; "" if the task names none.
      name: The id.
      registry: Specs of all registered ids.

    Raises:
      RefusedError: For an unknown id, or an id of another suite.
    """
    if name in registry and not _is_minigrid(name, registry[name]):
        return
    if other := _of_another_suite(name):
        suite, task = other
        raise faults.RefusedError(
            f"use the suite {suite}. Train with {_TRAIN_FLAGS[suite]} "
            f"--config.environment.task={task}, and check with --suite={suite} --task={task}"
        )
    try:
        names.check("gymnasium environment", name, registry, example="CartPole-v1")
    except ValueError as error:
        remedy = (
            f"{package} must register it when it is imported"
            if package
            else f"name the module that registers it, e.g. my_module:{name}"
        )
        end = "" if str(error).endswith("?") else "."
        raise faults.RefusedError(f"{error}{end} If the id is your own, {remedy}") from None


def _is_minigrid(name: str, spec: Any) -> bool:
    """Returns whether MiniGrid registered an id; agents read its texts in the suite minigrid."""
    return name.startswith(_MINIGRID) and str(spec.entry_point).startswith("minigrid.")


def _of_another_suite(name: str) -> tuple[str, str] | None:
    """Returns the suite of a task, and the suite's own name of it; None if no suite has it."""
    if name.startswith(_MINIGRID):
        return "minigrid", name
    atari = _ATARI.fullmatch(name)
    for task in (name, f"ALE/{atari[1]}-v5") if atari else (name,):
        for suite in _TRAIN_FLAGS:
            try:
                return suite, suites.config_class(suite)(suite=suite, task=task).task
            except (ValueError, ImportError):
                continue
    return None
