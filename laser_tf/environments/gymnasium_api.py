"""A gymnasium wrapper that checks an environment below the wrappers of `gymnasium.make`.

Gymnasium's wrappers unpack the results of an environment themselves, for example to count steps.
Without this check, they raise errors that name no expected API. Import this module in workers only,
because it loads gymnasium.
"""

import inspect
from typing import Any

import gymnasium

from laser_tf.environments import faults, gymnasium_results

_PACKAGE = "gymnasium."


def insert_check(environment: gymnasium.Env) -> None:
    """Inserts an `ApiCheck` below gymnasium's own wrappers, if there are any.

    Raises:
      RefusedError: If `reset` of the environment does not accept seed and options.
    """
    lowest, inner = None, environment
    while isinstance(inner, gymnasium.Wrapper) and type(inner).__module__.startswith(_PACKAGE):
        lowest, inner = inner, inner.env
    if lowest is not None:
        _check_reset_keywords(inner)
        lowest.env = ApiCheck(inner)


class ApiCheck(gymnasium.Wrapper):
    """Checks what the environment returns; see `gymnasium_results`."""

    def reset(self, **keywords: Any) -> tuple[Any, Any]:
        """See `gymnasium.Env`."""
        return gymnasium_results.of_reset(self.env.reset(**keywords))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        """See `gymnasium.Env`."""
        return gymnasium_results.of_step(self.env.step(action))


def _check_reset_keywords(environment: gymnasium.Env) -> None:
    try:
        parameters = inspect.signature(environment.reset).parameters
    except (TypeError, ValueError):  # A C extension has no signature.
        return
    takes_any = any(value.kind == value.VAR_KEYWORD for value in parameters.values())
    missing = {"seed", "options"} - set(parameters)
    if missing and not takes_any:
        raise faults.RefusedError(
            "its reset() must accept seed and options, got "
            f"reset({', '.join(parameters)}). This is the API of gymnasium. Define "
            "reset(self, *, seed=None, options=None)"
        )
