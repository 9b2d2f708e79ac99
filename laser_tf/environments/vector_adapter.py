"""Gymnasium's vector environments as time steps of dm_env. Only workers import this module."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import dm_env
import numpy as np
import tree
from gymnasium import vector as gymnasium_vector
from gymnasium.spaces import utils as space_utils
from gymnasium.vector import utils

from laser_tf import observations
from laser_tf.environments import adapter, faults, gymnasium_adapter

_MODES = gymnasium_vector.AutoresetMode
_MASK = observations.ACTION_MASK


class VectorAdapter(adapter.Adapter):
    """N environments that a `gymnasium.vector.VectorEnv` steps.

    The last time step of an episode has the last observation. The next time step ignores its action
    and has the first observation of the next episode. `AutoresetMode.NEXT_STEP` works the same way.

    With `SAME_STEP`, the step that ends an episode returns the first observation of the next one.
    The environment cannot pause there while others step, so it takes an ignored step and is reset
    again. This and the start of episodes that a time limit has cut need
    `reset(options={"reset_mask": mask})`, which must leave the other environments as they are.
    """

    def __init__(self, engine: gymnasium_vector.VectorEnv, seed: int):
        """Maps the spaces to specs and resets environment i with `seed + i`.

        Raises:
          UnsupportedSpaceError: For spaces without a spec, or another autoreset mode.
        """
        mode = engine.metadata.get("autoreset_mode")
        if mode not in (_MODES.NEXT_STEP, _MODES.SAME_STEP):
            raise faults.UnsupportedSpaceError(
                f"its metadata['autoreset_mode'] must be {_MODES.NEXT_STEP} or {_MODES.SAME_STEP}, "
                f"got {mode}. Use {_MODES.NEXT_STEP}"
            )
        self._num_envs = engine.num_envs
        self._resets_at_next_step = mode == _MODES.NEXT_STEP
        self._single_spec = gymnasium_adapter.spec_of(
            engine.single_observation_space, "observation"
        )
        action_spec = gymnasium_adapter.action_spec_of(engine.single_action_space)
        for name in ("observation_space", "action_space"):
            _check_space(engine, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # EnvPool warns that only its constructor takes a seed.
            self._first_reset: tuple | None = engine.reset(seed=seed)
        _, infos = gymnasium_adapter.check_length("reset", self._first_reset, 2)
        spec, self._info_mask = gymnasium_adapter.spec_with_mask(
            self._single_spec, _info_at(infos, 0)
        )
        if not self._resets_at_next_step and observations.action_mask(spec) is not None:
            raise faults.UnsupportedSpaceError(
                f"its metadata['autoreset_mode'] must be {_MODES.NEXT_STEP} with an {_MASK}, got "
                f"{mode}. Use {_MODES.NEXT_STEP}"
            )
        self._has_ended = np.zeros(self._num_envs, bool)  # In the newest step.
        self._newest: list[Any] = []  # Native observation of each environment.
        offsets = gymnasium_adapter.observation_offsets(
            engine.single_observation_space, self._info_mask
        )
        super().__init__(engine, spec, action_spec, offsets)

    def reset(self, starts: np.ndarray) -> list[dm_env.TimeStep | None]:
        """Resets the environments of a mask bool [N]; returns None for the others.

        Raises:
          UnsupportedSpaceError: If other environments change, too.
        """
        options = None if starts.all() else {"reset_mask": starts.copy()}
        # A worker that restarts within a step has no newest observations yet.
        others = {i: _copy(row) for i, row in enumerate(self._newest) if not starts[i]}
        result = self._first_reset or self._engine.reset(options=options)
        self._first_reset = None
        observation, infos = gymnasium_adapter.check_length("reset", result, 2)
        rows = self._rows(observation)
        environments = np.arange(self._num_envs)
        if len(rows) < self._num_envs:  # EnvPool returns rows of the reset environments only.
            environments = infos.get("env_id", np.flatnonzero(starts))
        else:
            for index, before in others.items():
                _check_unchanged(before, rows[index])
            self._newest = rows
        self._has_ended &= ~starts
        time_steps: list[dm_env.TimeStep | None] = [None] * self._num_envs
        for row, index in enumerate(environments):
            if starts[index]:
                shown = self._with_mask(rows[row], _info_at(infos, row), False)
                time_steps[index] = dm_env.restart(shown)
        return time_steps

    def step(self, actions: Sequence[Any], starts: np.ndarray) -> list[dm_env.TimeStep]:
        """Takes the native action of each environment and returns the time steps.

        Environments of the mask `starts`, bool [N], start an episode and ignore their actions.

        Raises:
          ValueError: For results of another form.
        """
        batch = tree.map_structure(lambda *leaves: np.stack(leaves), *actions)
        result = gymnasium_adapter.check_length("step", self._engine.step(batch), 5)
        observation, reward, terminated, truncated, infos = result
        rows = self._newest = self._rows(observation)
        for values in (rows, reward, terminated, truncated):
            if len(values) != self._num_envs:
                raise ValueError(
                    f"its step() must return results of {self._num_envs} environments, got "
                    f"{len(values)}"
                )
        pending = starts & ~(self._has_ended & self._resets_at_next_step)
        self._has_ended = np.asarray(terminated, bool) | np.asarray(truncated, bool)
        resets = self.reset(pending) if pending.any() else None

        def time_step(index: int) -> dm_env.TimeStep:
            if pending[index]:
                return resets[index]
            has_ended, is_terminal = self._has_ended[index], bool(terminated[index])
            row = rows[index]
            if has_ended and not self._resets_at_next_step:
                row = self._final_row(infos, index)
            shown = self._with_mask(row, _info_at(infos, index), is_terminal)
            if starts[index]:
                return dm_env.restart(shown)
            step_type = dm_env.StepType.LAST if has_ended else dm_env.StepType.MID
            return dm_env.TimeStep(step_type, reward[index], 0.0 if is_terminal else 1.0, shown)

        return [time_step(index) for index in range(self._num_envs)]

    def _with_mask(self, row: Any, info: Mapping[str, Any], is_terminal: bool) -> Any:
        return gymnasium_adapter.with_mask(self._info_mask, row, info, is_terminal)

    def _rows(self, batch: Any) -> list[Any]:
        """Returns the native observation of each environment of a batch."""
        leaves = tree.flatten_up_to(self._single_spec, batch, check_types=False)
        return [tree.unflatten_as(self._single_spec, row) for row in zip(*leaves, strict=True)]

    def _final_row(self, infos: Mapping[str, Any], index: int) -> Any:
        """Returns the last observation of an episode that has ended in this step."""
        if "final_obs" not in infos:
            raise ValueError(
                f"its info must have the key 'final_obs' with {_MODES.SAME_STEP}, got {list(infos)}"
            )
        final = infos["final_obs"]
        is_objects = isinstance(final, np.ndarray) and final.dtype == object
        return final[index] if is_objects else self._rows(final)[index]

    def render(self, index: int) -> np.ndarray:
        """Returns the rendered image of one environment."""
        images = self._engine.render() if self._engine.render_mode == "rgb_array" else None
        if images is None or len(images) != self._num_envs:
            raise NotImplementedError("its render() returns no image of each environment")
        return np.asarray(images[index])


def _copy(row: Any) -> Any:
    return tree.map_structure(np.array, row)


def _check_unchanged(before: Any, row: Any) -> None:
    """Checks the observation of an environment that a reset of others must not change."""
    for old, new in zip(tree.flatten(before), tree.flatten(_copy(row)), strict=True):
        if not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
            raise faults.UnsupportedSpaceError(
                "its reset(options={'reset_mask': mask}) must leave the other environments as they "
                "are, got a new observation of one. Implement the mask, or use a SyncVectorEnv of "
                "single environments (make_vec: vectorization_mode=sync)"
            )


def _check_space(engine: gymnasium_vector.VectorEnv, name: str) -> None:
    """Checks that the space of all environments is a batch of the space of one environment."""
    single, space = getattr(engine, f"single_{name}"), getattr(engine, name)
    batch = utils.batch_space(single, engine.num_envs)
    # EnvPool has the space of one environment under both names.
    if space != single and not space_utils.is_space_dtype_shape_equiv(space, batch):
        raise faults.UnsupportedSpaceError(
            f"its {name} must be a batch of single_{name}, {type(batch).__name__} {batch.shape}, "
            f"got {type(space).__name__} {space.shape}. Define both alike"
        )


def _info_at(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Returns the info of one environment, of which only the action mask is used."""
    if _MASK not in infos or not infos.get(f"_{_MASK}", {index: True})[index]:
        return {}
    return {_MASK: infos[_MASK][index]}
