"""Checks an environment before training: specs, faults, reproducibility and speed."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.environments import (
    base,
    canonical_observations,
    environment_config,
    factory,
    faults,
    random_rollout,
)

_SPEED_SECONDS = 3.0
_MAX_DARK_BYTE = 25  # Images have brighter pixels.


@dataclasses.dataclass
class CheckReport:
    """Result of a check."""

    lines: list[str] = dataclasses.field(default_factory=list)  # Each starts with a label.
    fault: str = ""  # One line; "" for none.
    spec: types.EnvironmentSpec | None = None  # None if the environment cannot be created.

    def add(self, label: str, text: str) -> None:
        """Adds a line."""
        self.lines.append(f"{label:15}{text}")


class _RaisingFaults(faults.Faults):
    """Raises the first fault."""

    def note(
        self, index: int, kind: str, what: str, details: str = "", step: int | None = None
    ) -> None:
        """See `faults.Faults`."""
        error = faults.EnvironmentFailedError(self._with_step(index, what, step))
        error.add_note(details)
        raise error


def check(
    config: environment_config.EnvironmentConfig,
    *,
    steps: int,
    seed: int,
    seconds: float = math.inf,
    on_progress: Callable[[str], None] = lambda _: None,
) -> CheckReport:
    """Takes random steps in one environment, repeats them, then takes random steps in the batch.

    One environment takes up to `steps` steps in up to `seconds`, but at least one. The repetition
    has the same seed and actions, and a second environment in the same worker. `on_progress` gets a
    short description of the current work at every step.

    Raises:
      ImportError: If the suite needs a package that is not installed.
      ValueError: If the environment cannot be created for a reason outside its code, or its specs
        have no canonical form.
    """
    if len(config.tasks) > 1:
        raise errors.ConfigError(f"task must be one task, got {config.task!r}.")
    report = CheckReport()
    try:
        on_progress("creating one environment")
        with _create(config, seed, 1) as environment:
            report.spec = environment.spec()
            _describe(report, report.spec)
            first = random_rollout.roll_out(environment, steps, seconds, seed, on_progress)
            for _ in range(2):  # A reset within an episode, as in evaluations.
                environment.reset()
                environment.step(environment.random_actions(base.action_generator(0)))
        on_progress("creating the environment again, next to a second one")
        again = _repeat(config, first, seed, on_progress)
        report.add("episodes", _episodes(first))
        report.add("deterministic", _determinism(first, again))
        if first.num_steps < steps:
            report.add(
                "warning",
                f"{first.num_steps:,} of {steps:,} steps were taken in {seconds:g} s, the time "
                "limit: raise --seconds for more",
            )
        on_progress(f"measuring the speed of {config.num_envs} environments")
        with _create(config, seed, config.num_envs) as environment:
            limit = min(_SPEED_SECONDS, seconds)
            batch = random_rollout.roll_out(environment, math.inf, limit, seed, lambda _: None)
            if config.user_creates_batch:
                _restart_one(environment)
        report.add(
            "speed",
            f"{first.steps_per_second:,.1f} steps/s with 1 environment, "
            f"{batch.steps_per_second:,.1f} steps/s with {config.num_envs}",
        )
        for warning in _warnings(first, report.spec):
            report.add("warning", warning)
    except faults.EnvironmentCreationError as error:
        if not error.details:  # The cause is outside the code of the environment.
            raise
        report.lines += error.details.splitlines()
        report.fault = f"it cannot be created: {error.reason}"
    except faults.EnvironmentFailedError as error:
        report.lines += "".join(getattr(error, "__notes__", [])).splitlines()
        report.fault = str(error)
    return report


def _create(
    config: environment_config.EnvironmentConfig, seed: int, num_envs: int
) -> contextlib.closing[base.BatchedEnvironment]:
    environment = factory.make_environment(config, seed=seed, num_envs=num_envs)
    environment.faults = _RaisingFaults(num_envs)
    return contextlib.closing(environment)


def _repeat(
    config: environment_config.EnvironmentConfig,
    first: random_rollout.Rollout,
    seed: int,
    on_progress: Callable[[str], None],
) -> random_rollout.Rollout:
    """Repeats random steps with a second environment, in the same worker if a run shares it."""
    shares_worker = getattr(config, "worker_count", config.num_envs) < config.num_envs
    changed: dict[str, Any] = {"num_workers": 1} if shares_worker else {}
    repeated = dataclasses.replace(config, **changed)
    with _create(repeated, seed, min(2, config.num_envs)) as environment:
        return random_rollout.roll_out(
            environment, first.num_steps, math.inf, seed, on_progress, first.previous_action
        )


def _restart_one(environment: base.BatchedEnvironment) -> None:
    """Restarts one environment while the others continue, as after a time limit."""
    environment.reset()
    environment.max_steps_per_episode = 2
    environment.faults.episode_steps[0] = 1  # One step ahead of the others.
    for _ in range(2):
        environment.step(environment.random_actions(base.action_generator(0)))


def _describe(report: CheckReport, spec: types.EnvironmentSpec) -> None:
    """Adds the specs to a report."""
    for path, leaf in tree.flatten_with_path(spec.observation):
        name = "/".join(map(str, path))
        report.add("observation", f"{name + ': ' if name else ''}{_leaf(leaf)}")
    report.add("action", observations.describe_action(spec.action))


def _leaf(spec: specs.Array) -> str:
    if isinstance(spec, types.TextSpec):
        return f"text of up to {spec.shape[0]} words"
    if isinstance(spec, specs.DiscreteArray):
        return f"one of {spec.num_values}"
    if spec.dtype == np.bool_:  # Other bools are images or float vectors.
        return f"mask of {spec.shape[0]} actions"
    if isinstance(spec, types.ProductSpec):
        return f"{spec.shape[0]} categories of {sum(spec.num_values)} values in total"
    kind = {0: "number", 1: "vector", 3: "image"}[len(spec.shape)]
    return f"{kind} {spec.dtype} {list(spec.shape)}"


def _episodes(rollout: random_rollout.Rollout) -> str:
    if not rollout.episodes():
        return f"none ended in {rollout.num_steps:,} random steps"
    lengths, returns, discounts = zip(*rollout.episodes(), strict=True)
    terminated = discounts.count(0)
    return (
        f"{len(lengths)} in {rollout.num_steps:,} random steps: {_span(lengths)} steps, returns "
        f"{_span(returns)}; {terminated} terminated, {len(lengths) - terminated} truncated"
    )


def _span(values: Sequence[float]) -> str:
    return f"{min(values):g} to {max(values):g}"


def _determinism(first: random_rollout.Rollout, again: random_rollout.Rollout) -> str:
    for field in ("observation", "reward", "discount", "is_first"):
        differs = np.flatnonzero(getattr(first, field) != getattr(again, field))
        if differs.size:
            return (
                f"no: the same seed and actions gave another {field} at step {differs[0]}. A run "
                "cannot be repeated, and its video shows other episodes: sample all random numbers "
                "from a generator with the seed of reset() or of the constructor. Environments of "
                "a worker share np.random and random"
            )
    return "yes: the same seed and actions gave the same steps"


def _warnings(rollout: random_rollout.Rollout, spec: types.EnvironmentSpec) -> Iterator[str]:
    """Yields descriptions of results that are valid but rarely intended."""
    if not rollout.episodes():
        yield (
            "no episode ended: if none ever does, set max_frames_per_episode (below "
            f"{rollout.num_steps:,} to see it here), because returns are reported at the end of an "
            "episode"
        )
    if not rollout.reward.any():
        yield "no random step had a reward: learning has nothing to start from"
    if len(np.unique(rollout.observation)) == 1:
        yield "all observations are the same"
    for leaf, maximum in zip(tree.flatten(spec.observation), rollout.maxima, strict=True):
        if not observations.is_image(leaf):
            continue
        if leaf.dtype != np.uint8 and maximum > _MAX_DARK_BYTE:
            yield (
                f"an image {list(leaf.shape)} of {leaf.dtype} has values up to {maximum:g}, which "
                "agents do not scale: return bytes (uint8), or floats of about 1"
            )
        if leaf.dtype == np.uint8 and 0 < maximum <= _MAX_DARK_BYTE:
            yield (
                f"an image {list(leaf.shape)} of bytes has no value above {maximum:g}: agents "
                "divide bytes by 255, so such small codes hardly differ; return bool, or floats of "
                "about 1"
            )
        if leaf.shape[0] < canonical_observations.MIN_SIDE <= min(leaf.shape[1:]):
            yield (
                f"an image {list(leaf.shape)} has height {leaf.shape[0]} and {leaf.shape[2]} "
                "channels: if its channels are first, move them, e.g. by numpy.moveaxis(image, 0, "
                "-1)"
            )
