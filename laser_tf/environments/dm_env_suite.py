"""Environments of dm_env: `task=my_module:make`, a function that returns a `dm_env.Environment`."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import dm_env

from laser_tf.environments import canonical_specs, python_config, user_modules


@dataclasses.dataclass(frozen=True, kw_only=True)
class DmEnvConfig(python_config.PythonConfig):
    """Of functions that return a `dm_env.Environment`.

    The function gets `arguments`, and `seed` if it has such a parameter.
    """

    suite: str = "dm_env"
    task: str

    def check_task(self, task: str) -> str:
        """Checks the form alone: user code runs in workers only."""
        return user_modules.check_path("a task of dm_env", task)

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `PythonConfig`."""
        return functools.partial(make, task, self.keyword_arguments())


def make(path: str, arguments: dict[str, Any], seed: int) -> dm_env.Environment:
    """Calls the user's function.

    Raises:
      RefusedError: where there is none, or it returns something else.
    """
    environment = user_modules.call(path, arguments, seed)
    if not isinstance(environment, dm_env.Environment):
        raise canonical_specs.RefusedError(
            f"{path} returned a {type(environment).__name__}, not a dm_env.Environment"
        )
    return environment
