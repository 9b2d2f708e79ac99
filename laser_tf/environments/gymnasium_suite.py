"""Gymnasium's environments (Towers et al. 2024), by id; `my_package:MyEnv-v0` is imported first."""

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import dm_env

from laser_tf import config_values, errors, user_code
from laser_tf.environments import faults, python_config

_ID = re.compile(r"([A-Za-z_][\w.]*:)?[\w./-]+")
_OLD_GYM = "GymV"  # Ids whose argument env_id makes the package gym import a module.
# Package in an error of gymnasium -> remedy. Gymnasium's remedy for Box2D asks for swig, which the
# wheel does not need. Its remedy for MuJoCo installs a version that dm_control rejects.
_REMEDIES = {
    "Box2D": "Box2D is not installed: run make box2d, or pip install box2d",
    "MuJoCo": "MuJoCo is not installed or cannot be imported: run make control",
}
# Pattern of ids -> their suite, and a variant of `configs/laser.py`.
_OTHER_SUITES = {
    r"ALE/.*|\w+(NoFrameskip|Deterministic)-v\d": ("atari", "atari"),
    r"MinAtar/.*": ("minatar", "minatar"),
    r"(MiniGrid|BabyAI)-.*": ("minigrid", "babyai"),
    r"[a-zA-Z_]+/[a-z_0-9]+": ("dm_control", "control"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GymnasiumConfig(python_config.PythonConfig):
    """Configuration of ids of gymnasium; `arguments` are those of `gymnasium.make`."""

    suite: str = "gymnasium"
    task: str = "CartPole-v1"

    def check_task(self, task: str) -> str:
        """Checks the form only, because user code, which registers ids, runs in workers only."""
        if not _ID.fullmatch(task):
            raise errors.ConfigError(
                f"task must be an id of gymnasium, got {task!r}. Use e.g. CartPole-v1, or "
                "my_package:MyEnv-v0."
            )
        return task

    def user_code(self) -> tuple[str, ...]:
        """See `EnvironmentConfig`."""
        imported = (task for task in self.tasks if ":" in task or task.startswith(_OLD_GYM))
        return super().user_code() or tuple(imported)

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `PythonConfig`."""
        if self.pickled_function:
            return super().maker(task, rendering)
        return functools.partial(make, task, self.keyword_arguments(), rendering)


def make(task: str, arguments: dict[str, Any], rendering: bool, seed: int) -> dm_env.Environment:
    """Creates an environment of the registry, in a worker; later resets continue its random stream.

    Raises:
      UnsupportedSpaceError: For an unknown id, a missing package or unsupported spaces.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import gymnasium

    from laser_tf.environments import gymnasium_adapter

    package, _, name = task.rpartition(":")
    if package:
        user_code.load_module(package)
    _check_id(package, name, gymnasium.registry)
    if "id" in arguments:
        raise faults.UnsupportedSpaceError(
            f"environment.arguments must not have the key id, got {arguments['id']!r}. Set "
            "environment.task"
        )
    given = {"disable_env_checker": True, **arguments}
    create = functools.partial(gymnasium.make, name, **given)
    try:
        environment = _create_rendered(create) if rendering else create()
    except gymnasium.error.DependencyNotInstalled as error:
        found = (remedy for package, remedy in _REMEDIES.items() if package in str(error))
        raise faults.UnsupportedSpaceError(next(found, str(error))) from error
    return gymnasium_adapter.Gymnasium(environment, seed)


def _create_rendered(create: Callable[..., Any]) -> Any:
    """Creates a `gymnasium.Env` that renders images, if it can."""
    try:
        return create(render_mode="rgb_array")
    except Exception:  # Environments without this mode raise errors of many types.
        return create()


def _check_id(package: str, name: str, registry: Mapping[str, Any]) -> None:
    """Checks that an id is registered and not of another suite."""
    # Agents read the texts of MiniGrid in its own suite only.
    is_minigrid = name in registry and str(registry[name].entry_point).startswith("minigrid.")
    if name in registry and not is_minigrid:
        return
    for pattern, (suite, variant) in _OTHER_SUITES.items():
        if re.fullmatch(pattern, name) and not package:
            raise faults.UnsupportedSpaceError(
                f"{name} needs another suite: train with --config=laser:{variant} "
                f"--config.environment.suite={suite} --config.environment.task={name}, and check "
                f"with --suite={suite} --task={name}"
            )
    try:
        config_values.check_name("gymnasium environment", name, registry, example="CartPole-v1")
    except ValueError as error:
        remedy = (
            f"{package} must register it when it is imported"
            if package
            else f"name the module that registers it, e.g. my_module:{name}"
        )
        raise faults.UnsupportedSpaceError(f"{error} (for your own id, {remedy})") from None
