"""Gymnasium environments as dm_env environments. Only workers import this module."""

from collections.abc import Callable, Mapping
from typing import Any

import dm_env
import gymnasium
import numpy as np
import tree
from dm_env import specs
from gymnasium import spaces

from laser_tf import observations
from laser_tf.environments import adapter, canonical_observations, faults

_IMAGES = "rgb_array"
_MASK = observations.ACTION_MASK


class Gymnasium(adapter.Adapter):
    """One environment; an episode that is truncated keeps the discount at 1.

    If infos have an action mask, an observation is a dictionary of the native one and the mask.
    """

    def __init__(self, environment: gymnasium.Env, seed: int):
        """Maps the spaces to specs by `spec_of`; `seed` is the seed of the first reset."""
        spec = spec_of(environment.observation_space, "observation")
        action_spec = action_spec_of(environment.action_space)
        self._info_mask: specs.Array | None = None
        # Only the info of a reset shows whether there are masks. `reset` returns or raises the
        # result of this first reset.
        self._first_reset: tuple | Exception | None
        try:
            _, info = self._first_reset = check_length("reset", environment.reset(seed=seed), 2)
        except Exception as error:  # User code raises anything.
            self._first_reset = error
        else:
            spec, self._info_mask = spec_with_mask(spec, info)
        offsets = observation_offsets(environment.observation_space, self._info_mask)
        super().__init__(environment, spec, action_spec, offsets)

    def reset(self) -> dm_env.TimeStep:
        """See `dm_env.Environment`; raises ValueError for the API of gym before 0.26."""
        first, self._first_reset = self._first_reset, None
        if isinstance(first, Exception):
            raise first
        observation, info = first or check_length("reset", self._engine.reset(seed=None), 2)
        return dm_env.restart(with_mask(self._info_mask, observation, info, False))

    def step(self, action: Any) -> dm_env.TimeStep:
        """See `dm_env.Environment`; raises ValueError for invalid results."""
        result = check_length("step", self._engine.step(action), 5)
        observation, reward, terminated, truncated, info = result
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, bool | np.bool_):  # Texts and None have a truth value, too.
                raise ValueError(f"its {name} must be a bool, got {flag!r}. Return bool({name})")
        return dm_env.TimeStep(
            dm_env.StepType.LAST if terminated or truncated else dm_env.StepType.MID,
            reward,
            0.0 if terminated else 1.0,
            with_mask(self._info_mask, observation, info, terminated),
        )

    def render(self) -> np.ndarray:
        """Returns the rendered image."""
        if self._engine.render_mode != _IMAGES:
            raise NotImplementedError(
                f"its render_mode must be {_IMAGES!r}, got {self._engine.render_mode!r}"
            )
        return np.asarray(self._engine.render())


def _mask_of(info: Any) -> np.ndarray | None:
    if not isinstance(info, Mapping) or _MASK not in info:
        return None
    try:
        return np.asarray(info[_MASK])
    except ValueError:
        raise faults.UnsupportedSpaceError(
            f"its {_MASK} must be one array, got {info[_MASK]!r}. Masks are for a single discrete "
            "action"
        ) from None


def spec_with_mask(spec: Any, info: Any) -> tuple[Any, specs.Array | None]:
    """Returns the spec with the mask in the first info, and the spec of that mask (None: no mask).

    A mask in the observation takes precedence.
    """
    if observations.action_mask(spec) is not None:
        return spec, None
    mask = _mask_of(info)
    if mask is None:
        return spec, None
    info_mask = specs.Array(mask.shape, mask.dtype, _MASK)
    return {"observation": spec, _MASK: info_mask}, info_mask


def with_mask(info_mask: specs.Array | None, observation: Any, info: Any, is_terminal: bool) -> Any:
    """Returns an observation with the mask in its info, for the specs of `spec_with_mask`."""
    if info_mask is None:
        return observation
    mask = _mask_of(info)
    if mask is None and not is_terminal:
        raise ValueError(f"its info must have the key {_MASK!r} at each step, got {info!r}")
    if mask is None:
        mask = np.zeros(info_mask.shape, info_mask.dtype)
    return {"observation": observation, _MASK: mask}


def observation_offsets(space: gymnasium.Space, info_mask: specs.Array | None) -> list[Any]:
    """Returns the number or array at which the integers of each leaf start."""
    starts = [getattr(leaf, "start", 0) for leaf in tree.flatten(space)]
    return starts if info_mask is None else [0, *starts]  # "action_mask" is first.


def check_length(method: str, result: Any, length: int) -> Any:
    """Returns the result of a method, which must have `length` values."""
    is_tuple = isinstance(result, tuple | list)
    if not is_tuple or len(result) != length:
        values = f"{len(result)} values" if is_tuple else canonical_observations.type_name(result)
        raise ValueError(
            f"its {method}() returned {values}. The API of gymnasium is reset(seed=..., "
            "options=...) -> (observation, info) and step(action) -> (observation, reward, "
            "terminated, truncated, info); environments for gym before 0.26 return other values"
        )
    return result


def spec_of(space: gymnasium.Space, name: str) -> Any:
    """Returns the dm_env spec of a space, or a nest of specs, as if all integers started at 0.

    Raises:
      UnsupportedSpaceError: For a space without a spec; the message names it.
    """
    match space:
        case spaces.Discrete():
            return specs.DiscreteArray(int(space.n), np.int64, name)
        case spaces.Box():
            return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name)
        case spaces.MultiBinary():
            return specs.BoundedArray(space.shape, space.dtype, 0, 1, name)
        case spaces.MultiDiscrete():
            return canonical_observations.CategoryArray(
                space.shape, space.dtype, 0, space.nvec - 1, name
            )
        case spaces.Text():
            return specs.StringArray((), name=name)
        case spaces.Dict() | spaces.Tuple():
            return _map_parts(spec_of, space, name)
    raise faults.UnsupportedSpaceError(
        f"its {name} is a {type(space).__name__}: agents read Box, Discrete, MultiBinary, "
        "MultiDiscrete and Text, and Dict and Tuple of them; change it by a gymnasium wrapper"
    )


def action_spec_of(space: gymnasium.Space, name: str = "action") -> Any:
    """Returns the dm_env spec of an action space, whose integers start anywhere; see `spec_of`."""
    match space:
        case spaces.Discrete():
            last = int(space.start + space.n - 1)
            return specs.BoundedArray((), np.int64, int(space.start), last, name)
        case spaces.MultiDiscrete():
            last = space.start + space.nvec - 1
            return specs.BoundedArray(space.shape, space.dtype, space.start, last, name)
        case spaces.Dict() | spaces.Tuple():
            return _map_parts(action_spec_of, space, name)
        case spaces.Box() | spaces.MultiBinary():
            return spec_of(space, name)
    raise faults.UnsupportedSpaceError(
        f"its {name} is a {type(space).__name__}: agents take Discrete, MultiDiscrete, MultiBinary "
        "and Box with finite bounds, and Dict and Tuple of them; change it by a gymnasium wrapper"
    )


def _map_parts(
    function: Callable[[gymnasium.Space, str], Any], space: spaces.Dict | spaces.Tuple, name: str
) -> Any:
    """Calls a function with each part of a space and its name; returns a dict or tuple."""
    if isinstance(space, spaces.Dict):
        return {key: function(part, f"{name}[{key!r}]") for key, part in space.spaces.items()}
    parts = enumerate(space.spaces)
    return tuple(function(part, f"{name}[{index}]") for index, part in parts)
