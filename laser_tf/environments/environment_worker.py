"""Several Python environments in one worker process (see `worker_pool`)."""

import contextlib
import pathlib
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dm_env
import numpy as np
import tree
from dm_env import specs

from laser_tf import errors
from laser_tf.environments import (
    base,
    canonical_actions,
    canonical_observations,
    faults,
    rendered_image,
    serial_environment,
    shared_steps,
    worker_pool,
)

NOTHING, STEP, RESET = range(3)  # what an environment is told


class Description(NamedTuple):
    """Specs of a worker's environments."""

    observation: Any  # canonical
    action: specs.BoundedArray  # canonical
    own: base.NativeSpec


class Refusal(NamedTuple):
    """Why there is no environment; one line."""

    reason: str
    details: str = ""  # a traceback, where user code raised


class Worker:
    """Environments that step one after the other; one that raises is made again by itself."""

    def __init__(
        self,
        restarts: int,
        file: int,
        *,
        make: Callable[[int], dm_env.Environment],
        seeds: Sequence[int],
        action_repeat: int,
        text_length: int,
    ):
        """Makes nothing yet.

        Args:
          restarts: of this worker.
          file: of `shared_steps`.
          make: an environment from its seed.
          seeds: one for each environment; an environment that is made again gets others.
          action_repeat: how often an environment gets an action, or until its episode ends.
          text_length: L, words of the longest text.
        """
        folder = str(pathlib.Path.cwd())
        if not {"", folder} & set(sys.path):  # Ray's workers do not search the current folder.
            sys.path.insert(0, folder)
        self._make = make
        self._seeds = list(seeds)
        self._action_repeat = action_repeat
        self._text_length = text_length
        self._file = file
        self._restarts = [restarts] * len(seeds)  # of each environment, its worker's included
        self._environments: list[dm_env.Environment | None] = [None] * len(seeds)
        self._shown: list[Any] = [None] * len(seeds)  # each environment's own last observation
        self._newest: shared_steps.SharedSteps | None = None

    def describe(self) -> Description | Refusal:
        """Makes the first environment and reads its specs."""
        try:
            environment = self._start(0)
        except (faults.RefusedError, ImportError) as error:
            return Refusal(errors.one_line(error))
        except Exception as error:  # whatever user code raises, the message has to name it
            return Refusal(faults.describe(error), errors.printable(traceback.format_exc()))
        spec = self._observation.spec
        if hasattr(environment, "observation_offsets"):
            firsts = environment.observation_offsets()
        else:
            firsts = [0] * len(tree.flatten(spec))
        return Description(spec, self._action.spec, base.NativeSpec(self._action.own, firsts))

    def _start(self, index: int) -> dm_env.Environment:
        """Makes an environment, with a seed that no attempt before it had."""
        seed = self._seeds[index]
        if self._restarts[index]:
            sequence = np.random.SeedSequence([seed, self._restarts[index]])
            seed = int(sequence.generate_state(1)[0]) >> 1
        random.seed(seed)  # for those that draw their own seed from a global generator
        np.random.seed(seed)
        environment = self._make(seed)
        if self._newest is None:
            self._observation = canonical_observations.Observation(
                environment.observation_spec(), self._text_length
            )
            self._action = canonical_actions.Action(environment.action_spec())
            self._newest = shared_steps.SharedSteps(
                self._file, self._observation.spec, len(self._seeds)
            )
        self._environments[index] = environment
        return environment

    def play(self, commands: Sequence[int], actions: np.ndarray) -> dict[int, worker_pool.Failure]:
        """Takes each environment one step on and writes what it showed.

        Args:
          commands: NOTHING, STEP or RESET for each.
          actions: canonical, [n, ...].

        Returns:
          Index -> what went wrong, for environments that failed and are to be reset.
        """
        failures = {}
        with np.errstate(over="ignore"):  # too large for float32: infinite, which is found
            for index, command in enumerate(commands):
                if command == NOTHING:
                    continue
                try:
                    self._play(index, command, actions[index])
                except Exception as error:  # user code's own
                    failures[index] = worker_pool.Failure(
                        faults.describe(error), errors.printable(traceback.format_exc())
                    )
                    self._discard(index)
        return failures

    def _play(self, index: int, command: int, action: np.ndarray) -> None:
        self._note_call(index)
        environment = self._environments[index]
        if command == RESET:
            environment = environment or self._start(index)
            self._note_call(index)
            time_step = environment.reset()
            reward, discount, is_last = _outcome(time_step, command)
        else:
            reward, discount, is_last = serial_environment.repeat_action(
                lambda: self._take_frame(index, action), self._action_repeat
            )
            time_step = self._time_step
        self._shown[index] = time_step.observation
        leaves = self._observation(time_step.observation)
        for array, leaf in zip(self._newest.observation, leaves, strict=True):
            array[index] = leaf
        self._newest.reward[index] = reward
        self._newest.discount[index] = discount
        self._newest.over[index] = is_last

    def _take_frame(self, index: int, action: np.ndarray) -> tuple[float, float, bool]:
        self._note_call(index)
        # A new action each time: an environment may change its action in place.
        self._time_step = self._environments[index].step(self._action(action))
        return _outcome(self._time_step, STEP)

    def _note_call(self, index: int) -> None:
        """Writes which environment is called and when; the parent's time limit restarts there."""
        if self._newest is not None:
            self._newest.busy[0] = index
            self._newest.busy_since[0] = time.monotonic()

    def _discard(self, index: int) -> None:
        environment, self._environments[index] = self._environments[index], None
        self._restarts[index] += 1
        if environment is not None:
            with contextlib.suppress(Exception):  # it is broken already
                environment.close()

    def outside_bounds(self) -> str:
        """What of the last observations is outside their specs' bounds; "" for nothing."""
        for shown in self._shown:
            outside = "" if shown is None else self._observation.outside_bounds(shown)
            if outside:
                return outside
        return ""

    def render(self, index: int) -> Any:
        """A picture uint8 [height, width, 3], or why there is none."""
        try:
            picture = np.asarray(self._environments[index].render())
        except Exception as error:  # user code's own, or a library that is missing
            return faults.describe(error)
        try:
            return rendered_image.to_rgb(picture)
        except ValueError as error:
            return f"its render() returns no image: {error}"

    def close(self) -> None:
        """Closes all."""
        for environment in self._environments:
            if environment is not None:
                with contextlib.suppress(Exception):
                    environment.close()


def _outcome(time_step: Any, command: int) -> tuple[float, float, bool]:
    """Checks a time step and returns its reward, its discount, and whether it is the last one."""
    step_type = _step_type(time_step)
    is_first = step_type == dm_env.StepType.FIRST
    if is_first != (command == RESET):
        told = "reset" if command == RESET else "step"
        raise ValueError(f"its {told}() returned a time step of {time_step.step_type}")
    if is_first:
        return 0.0, 1.0, False
    reward = _number("reward", time_step.reward)
    discount = _number("discount", time_step.discount)
    if discount < 0 or discount > 1:  # NaN is found elsewhere
        raise ValueError(f"its discount is {discount}: use values from 0 to 1")
    return reward, discount, step_type == dm_env.StepType.LAST


def _step_type(time_step: Any) -> dm_env.StepType:
    """Returns a time step's type; raises ValueError unless it is an integer from 0 to 2."""
    step_type = time_step.step_type
    if not isinstance(step_type, dm_env.StepType):
        array = np.asarray(step_type)  # TF-Agents' step types are arrays of rank 0.
        if array.shape or array.dtype.kind not in "iu" or not 0 <= array <= 2:
            raise ValueError(
                f"its step_type must be an integer from 0 to 2, got {step_type!r}. "
                "Return dm_env.StepType.FIRST, MID or LAST"
            )
        step_type = dm_env.StepType(int(array))
    return step_type


def _number(name: str, value: Any) -> float:
    if not isinstance(value, float):
        array = np.asarray(value)
        if array.shape or array.dtype.kind not in "buif":
            raise ValueError(f"its {name} is {array.dtype}{list(array.shape)}, not a number")
    return float(value)
