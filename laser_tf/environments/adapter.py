"""Base of single environments: an engine, or an environment of another library."""

from collections.abc import Callable, Sequence
from typing import Any

import dm_env


class Adapter(dm_env.Environment):
    """One environment with fixed specs, around an engine or an environment of another library."""

    def __init__(
        self, engine: Any, observation_spec: Any, action_spec: Any, offsets: Sequence[Any] = ()
    ):
        """Takes the engine, which `close` closes, and the result of `observation_offsets`."""
        self._engine = engine
        self._offsets = list(offsets)
        self._observation_spec = observation_spec
        self._action_spec = action_spec

    def observation_spec(self) -> Any:
        """Returns the nest of native specs."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """Returns the native spec of actions, or a nest of native specs."""
        return self._action_spec

    def observation_offsets(self) -> list[Any]:
        """Returns the number or array at which the integers of each leaf start; [] for 0."""
        return self._offsets

    def close(self) -> None:
        """Closes the engine."""
        self._engine.close()


def repeat_action(
    take_frame: Callable[[], tuple[float, float, bool]], times: int
) -> tuple[float, float, bool]:
    """Repeats an action for `times` env frames or until the episode ends.

    `take_frame` returns reward, discount, and whether the episode has ended. The result is the sum
    of the rewards, the product of the discounts, and the last flag.
    """
    total, product = 0.0, 1.0
    for _ in range(times):
        reward, discount, is_last = take_frame()
        total += reward
        product *= discount
        if is_last:
            break
    return total, product, is_last
