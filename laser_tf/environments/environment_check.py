"""Tries an environment by random play, and says what an agent would see and what is wrong."""

import contextlib
import dataclasses
import math
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.environments import (
    base,
    environment_config,
    factory,
    faults,
    python_environments,
    random_streams,
)

_SPEED_SECONDS = 3.0
_MOST_CHANNELS = 4  # of an image as one sees it
_DARK = 25  # of a byte's 255; pictures have brighter pixels
_FIELDS = ("observation", "reward", "discount", "is_first")


@dataclasses.dataclass
class CheckReport:
    """What was found."""

    lines: list[str] = dataclasses.field(default_factory=list)
    fault: str = ""  # one line; "": none
    spec: types.EnvironmentSpec | None = None  # None if the environment cannot be made


class _CheckFailedError(faults.EnvironmentFailedError):
    """A fault, and the traceback that goes with it."""

    def __init__(self, fault: str, details: str = ""):
        super().__init__(fault)
        self.details = details


class _RaisingFaults(faults.Faults):
    """Raises the first fault instead of going on."""

    def note(self, game: int, kind: str, what: str, details: str = "") -> None:
        """See `faults.Faults`."""
        what = what.removesuffix(faults.STARTED_AGAIN)
        raise _CheckFailedError(f"{what} (step {self._steps[game]} of its episode)", details)


class _Play(NamedTuple):
    """Random play of one environment: arrays of T + 1 steps."""

    checksums: np.ndarray  # int64 [T + 1, fields]
    reward: np.ndarray
    discount: np.ndarray
    is_first: np.ndarray
    steps_per_second: float
    greatest: list[float]  # value of each array of the observation


class _Limits(NamedTuple):
    """Bounds of random play."""

    steps: int
    seconds: float = math.inf


def check(
    config: environment_config.EnvironmentConfig,
    *,
    steps: int,
    seed: int,
    seconds: float = math.inf,
    on_progress: Callable[[str], None] = lambda _: None,
) -> CheckReport:
    """Plays at random: one environment twice by the same seed, then the batch.

    Args:
      config: of one task.
      steps: Max steps of one environment.
      seed: of the environments and the actions.
      seconds: Time limit of one environment's random steps; at least one step is taken.
      on_progress: Called with a short description of the current work, at every step.

    Raises:
      ImportError: where the suite needs a package that is not installed.
      ValueError: for an environment that cannot be made, by no fault in its code, or that no agent
        can play.
    """
    if len(config.tasks) > 1:
        raise errors.ConfigError(f"task is {config.task!r}: check one task at a time")
    report = CheckReport()
    try:
        _check(config, _Limits(steps, seconds), seed, on_progress, report)
    except _CheckFailedError as error:
        report.lines += error.details.splitlines()
        report.fault = str(error)
    return report


def _check(
    config: environment_config.EnvironmentConfig,
    limits: _Limits,
    seed: int,
    on_progress: Callable[[str], None],
    report: CheckReport,
) -> None:
    """Fills the report; raises `_CheckFailedError` at the first fault."""
    on_progress("creating one environment")
    with _made(config, seed, 1) as environment:
        report.spec = environment.spec()
        report.lines += _describe(report.spec)
        first = _play(environment, limits, seed, on_progress, "random play")
        _check_reset(environment)
    taken = len(first.reward) - 1
    on_progress("creating the environment again")
    with _made(config, seed, 1) as environment:
        again = _play(environment, _Limits(taken), seed, on_progress, "random play again")
    report.lines += [_episodes(first), _determinism(first, again)]
    if taken < limits.steps:
        report.lines.append(
            f"note           {taken:,} of {limits.steps:,} steps were taken in "
            f"{limits.seconds:g} s, the time limit: raise --seconds for more"
        )
    on_progress(f"creating {config.num_envs} environments")
    with _made(config, seed, config.num_envs) as environment:
        on_progress(f"measuring the speed of {config.num_envs} environments")
        together = _speed(environment, seed, limits.seconds)
    report.lines.append(
        f"speed          {_rate(first.steps_per_second)} steps/s alone, {_rate(together)} steps/s "
        f"as {config.num_envs}"
    )
    report.lines += _warnings(first, report.spec)


@contextlib.contextmanager
def _made(config: environment_config.EnvironmentConfig, seed: int, num_envs: int) -> Any:
    try:
        environment = factory.make_environment(config, seed=seed, num_envs=num_envs)
    except faults.EnvironmentCreationError as error:
        if not error.details:  # no fault in its code
            raise
        raise _CheckFailedError(f"it cannot be made: {error.reason}", error.details) from error
    environment.faults = _RaisingFaults(num_envs)
    with contextlib.closing(environment):
        yield environment


def _play(
    environment: base.BatchedEnvironment,
    limits: _Limits,
    seed: int,
    on_progress: Callable[[str], None],
    name: str,
) -> _Play:
    generator = random_streams.action_generator(seed)
    begin = time.perf_counter()
    env_output, played = environment.reset(), []
    seconds, step = 0.0, 0
    while True:
        _check_bounds(environment, env_output, step)
        reward, discount = env_output.reward[0], env_output.discount[0]
        is_first = env_output.is_first[0]
        sums, greatest = _checksums(env_output), _greatest(env_output)
        played.append((sums, reward, discount, is_first, greatest))
        on_progress(f"{name}, step {step:,} of {limits.steps:,}")
        start = time.perf_counter()
        if step == limits.steps or (step and start - begin >= limits.seconds):
            break
        env_output = environment.step(environment.random_actions(generator))
        seconds += time.perf_counter() - start
        step += 1
    checksums, rewards, discounts, firsts, greatests = map(np.array, zip(*played, strict=True))
    of_all = list(greatests.max(axis=0))
    return _Play(checksums, rewards, discounts, firsts, step / seconds, of_all)


def _greatest(env_output: types.EnvOutput) -> list[float]:
    return [float(leaf[0].max(initial=0)) for leaf in tree.flatten(env_output.observation)]


def _check_bounds(
    environment: base.BatchedEnvironment, env_output: types.EnvOutput, step: int
) -> None:
    if not isinstance(environment, python_environments.PythonEnvironments):
        return
    outside = environment.outside_bounds()
    if outside:
        raise _CheckFailedError(f"{outside} (step {step} of random play)")


def _checksums(env_output: types.EnvOutput) -> list[int]:
    sums = []
    for name in _FIELDS:
        total = 0
        for leaf in tree.flatten(getattr(env_output, name)):
            total = zlib.crc32(np.ascontiguousarray(leaf).tobytes(), total)
        sums.append(total)
    return sums


def _check_reset(environment: base.BatchedEnvironment) -> None:
    """Resets in the middle of an episode, as evaluations do."""
    for _ in range(2):
        environment.reset()
        environment.step(environment.random_actions(random_streams.action_generator(0)))


def _speed(environment: base.BatchedEnvironment, seed: int, seconds: float) -> float:
    """Returns the steps per second of all environments together."""
    generator = random_streams.action_generator(seed)
    environment.reset()
    start, steps = time.perf_counter(), 0
    while not steps or time.perf_counter() - start < min(_SPEED_SECONDS, seconds):
        environment.step(environment.random_actions(generator))
        steps += environment.num_envs
    return steps / (time.perf_counter() - start)


def _rate(steps_per_second: float) -> str:
    return f"{steps_per_second:,.0f}" if steps_per_second >= 10 else f"{steps_per_second:.2g}"


def _describe(spec: types.EnvironmentSpec) -> list[str]:
    lines = []
    for path, leaf in tree.flatten_with_path(spec.observation):
        name = "/".join(map(str, path))
        lines.append(f"observation    {name + ': ' if name else ''}{_leaf(leaf)}")
    action = spec.action
    if isinstance(action, specs.DiscreteArray):
        return [*lines, f"action         one of {action.num_values}"]
    bounds = f"{_brief(action.minimum)} to {_brief(action.maximum)}"
    return [*lines, f"action         {action.shape[0]} floats, {bounds} (continuous)"]


def _leaf(spec: specs.Array) -> str:
    if isinstance(spec, types.TextSpec):
        return f"text of up to {spec.shape[0]} words"
    if isinstance(spec, specs.DiscreteArray):
        return f"one of {spec.num_values}"
    kind = {0: "number", 1: "vector", 3: "image"}[len(spec.shape)]
    return f"{kind} {spec.dtype} {list(spec.shape)}"


def _brief(bounds: np.ndarray) -> str:
    values = np.unique(bounds)
    return f"{values[0]:g}" if len(values) == 1 else f"{np.round(bounds, 3).tolist()}"


def _spans(play: _Play) -> list[tuple[int, float, float]]:
    """Length, return and last discount of each whole episode."""
    starts = np.flatnonzero(play.is_first).tolist()
    starts += [len(play.is_first)] * int(play.discount[-1] == 0)
    return [
        (end - start - 1, float(play.reward[start:end].sum()), float(play.discount[end - 1]))
        for start, end in zip(starts[:-1], starts[1:], strict=True)
    ]


def _episodes(play: _Play) -> str:
    spans = _spans(play)
    steps = len(play.reward) - 1
    if not spans:
        return f"episodes       none ended in {steps:,} steps of random play"
    lengths, returns, discounts = zip(*spans, strict=True)
    ended = sum(discount == 0 for discount in discounts)
    return (
        f"episodes       {len(spans)} in {steps:,} steps of random play: {_span(lengths)} steps, "
        f"returns {_span(returns)}; {ended} terminated, {len(spans) - ended} cut"
    )


def _span(values: Sequence[float]) -> str:
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _determinism(first: _Play, again: _Play) -> str:
    differs = first.checksums != again.checksums
    if not differs.any():
        return "deterministic  yes: the same seed and actions gave the same steps"
    step = int(np.flatnonzero(differs.any(axis=1))[0])
    field = _FIELDS[int(np.flatnonzero(differs[step])[0])]
    return (
        f"deterministic  no: the same seed and actions gave another {field} at step {step}. A run "
        "cannot be repeated, and its film shows other episodes: let it take and use a seed"
    )


def _warnings(play: _Play, spec: types.EnvironmentSpec) -> list[str]:
    """What is no fault, but seldom meant."""
    warnings = []
    steps = len(play.reward) - 1
    if not _spans(play):
        warnings.append(
            f"no episode ended: if none ever does, set max_frames_per_episode (below {steps:,} to "
            "see it here), for returns are reported at an episode's end"
        )
    if not play.reward.any():
        warnings.append("no reward came by random play: learning has nothing to begin with")
    if len(np.unique(play.checksums[:, 0])) == 1:
        warnings.append("all observations are the same")
    for leaf, greatest in zip(tree.flatten(spec.observation), play.greatest, strict=True):
        if observations.is_image(leaf) and leaf.dtype == np.uint8 and 0 < greatest <= _DARK:
            warnings.append(
                f"an image {list(leaf.shape)} of bytes has no value above {greatest:g}: agents "
                "divide bytes by 255, which leaves such small codes hardly apart; return bool, or "
                "floats of about 1"
            )
        if observations.is_image(leaf) and leaf.shape[0] <= _MOST_CHANNELS < leaf.shape[2]:
            warnings.append(
                f"an image {list(leaf.shape)} looks like channels first: agents read height, width "
                "and channels; move the axis, and stack frames by replay.frame_stack"
            )
    return [f"note           {warning}" for warning in warnings]
