"""Environments of dm_env: `task=my_module:make`, a function that returns a `dm_env.Environment`."""

import dataclasses
from typing import Any

import dm_env

from laser_tf.environments import faults, python_config, user_modules


@dataclasses.dataclass(frozen=True, kw_only=True)
class DmEnvConfig(python_config.FunctionConfig):
    """Of functions that return a `dm_env.Environment`."""

    suite: str = "dm_env"

    @staticmethod
    def call(path: str, arguments: dict[str, Any], seed: int) -> dm_env.Environment:
        """See `FunctionConfig`."""
        environment = user_modules.call(path, arguments, seed)
        if not isinstance(environment, dm_env.Environment):
            raise faults.RefusedError(
                f"{path} returned a {type(environment).__name__}, not a dm_env.Environment"
            )
        return environment
