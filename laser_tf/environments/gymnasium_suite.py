"""Gymnasium's environments (Towers et al. 2024): any id that is registered.

`task=CartPole-v1`, or `my_package:MyEnv-v0`, which imports `my_package` first.
"""

import dataclasses
import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import dm_env

from laser_tf import errors
from laser_tf.environments import (
    faults,
    names,
    python_config,
    suites,
    user_modules,
)

if TYPE_CHECKING:  # it is loaded in workers
    import gymnasium

_ID = re.compile(r"([A-Za-z_][\w.]*:)?[\w./-]+")
_OLD_GYM = "GymV"  # ids whose argument env_id makes the package gym import a module
_PICTURES = "rgb_array"
# Package in gymnasium's message -> remedy. Its own advice for Box2D asks for swig, which the
# wheel does not need. Its advice for MuJoCo installs a version that dm_control rejects.
_REMEDIES = {
    "Box2D": "Box2D is not installed: run make box2d, or pip install box2d",
    "MuJoCo": "MuJoCo is not installed or cannot be imported: run make control, or install this "
    "package with its extra [control]",
}
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class GymnasiumConfig(python_config.PythonConfig):
    """Configuration of ids of gymnasium; `arguments` are those of `gymnasium.make`."""

    suite: str = "gymnasium"
    task: str = "CartPole-v1"

    def check_task(self, task: str) -> str:
        """Checks the form alone: user code, which registers ids, runs in workers only."""
        if not _ID.fullmatch(task):
            raise errors.ConfigError(
                "use an id of gymnasium, e.g. CartPole-v1, or my_package:MyEnv-v0"
            )
        return task

    def user_code(self) -> tuple[str, ...]:
        """See `EnvironmentConfig`."""
        return tuple(task for task in self.tasks if ":" in task or task.startswith(_OLD_GYM))

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `PythonConfig`."""
        return functools.partial(make, task, self.keyword_arguments(), rendering)


def make(task: str, arguments: dict[str, Any], rendering: bool, seed: int) -> dm_env.Environment:
    """Makes an environment of the registry.

    Args:
      task: Id, after "package:" if importing that package registers it.
      arguments: Arguments of `gymnasium.make`.
      rendering: Whether `render` will be called, if the environment can render.
      seed: Seed of the first reset, whose random stream continues.

    Raises:
      UnsupportedSpaceError: For an unknown id, a missing package, or spaces that agents cannot
        read.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import gymnasium

    from laser_tf.environments import gymnasium_adapter

    package, _, name = task.rpartition(":")
    if package:
        user_modules.load_module(package)
    _check_id(package, name, gymnasium.registry)
    try:
        environment = _create(name, arguments, rendering)
    except gymnasium.error.DependencyNotInstalled as error:
        found = (remedy for package, remedy in _REMEDIES.items() if package in str(error))
        raise faults.UnsupportedSpaceError(next(found, str(error))) from error
    gymnasium_adapter.insert_check(environment)
    return gymnasium_adapter.Gymnasium(environment, seed)


def _create(name: str, arguments: dict[str, Any], rendering: bool) -> "gymnasium.Env":
    """Makes a registered environment; to be rendered, it is asked for pictures if it has any."""
    import gymnasium
    from gymnasium.envs import registration

    from laser_tf.environments import gymnasium_adapter

    create = functools.partial(gymnasium.make, name, disable_env_checker=True)
    if not rendering:
        return create(**arguments)
    entry_point = registration.spec(name).entry_point
    if isinstance(entry_point, str):
        entry_point = registration.load_env_creator(entry_point)
    if not _takes_render_mode(entry_point):
        return create(**arguments)
    with_pictures = {"render_mode": _PICTURES, **arguments}
    if hasattr(entry_point, "metadata"):  # a class
        return create(**(with_pictures if gymnasium_adapter.draws(entry_point) else arguments))
    environment = create(**arguments)  # A function: its environment declares the modes.
    if not gymnasium_adapter.draws(environment):
        return environment
    environment.close()
    try:
        return create(**with_pictures)
    except TypeError:  # it hands render_mode on to what does not take it
        return create(**arguments)


def _takes_render_mode(entry_point: Callable) -> bool:
    return any(
        parameter.name == "render_mode" or parameter.kind == parameter.VAR_KEYWORD
        for parameter in inspect.signature(entry_point).parameters.values()
    )


def _check_id(package: str, name: str, registry: Mapping[str, Any]) -> None:
    """Checks that an id is registered and that agents can read its environment.

    Args:
      package: Package that was imported to register the id; "" if the task names none.
      name: The id.
      registry: Specs of all registered ids.

    Raises:
      UnsupportedSpaceError: For an unknown id, or an id of another suite.
    """
    if name in registry and not _is_minigrid(name, registry[name]):
        return
    if other := _of_another_suite(name):
        suite, task = other
        raise faults.UnsupportedSpaceError(
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
        raise faults.UnsupportedSpaceError(
            f"{error}{end} If the id is your own, {remedy}"
        ) from None


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
