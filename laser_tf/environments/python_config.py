"""Configuration of environments that are Python objects: what their suites have in common."""

import abc
import dataclasses
import functools
import importlib.util
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import dm_env

from laser_tf import config_checks, config_values, errors, user_code
from laser_tf.environments import (
    environment_config,
    environment_worker,
    python_environments,
    user_functions,
)

_MAX_REPLY_SECONDS = 86_400.0  # A day; waits must be finite.


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerConfig(environment_config.EnvironmentConfig):
    """Configuration of environments that run in worker processes, each a `dm_env.Environment`."""

    num_workers: int = 0  # processes; that step the environments; 0: one per core
    reply_seconds: float = 60.0  # seconds; time limit of a call, after which a worker restarts

    worker_class: ClassVar[type[environment_worker.Worker]] = environment_worker.Worker
    engine_repeats_actions: ClassVar[bool] = False  # Whether a step is `action_repeat` frames.
    package: ClassVar[str] = ""  # Package that workers import.
    missing_package: ClassVar[str] = ""  # Error message if it is missing.

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "num_workers", 0, 1_024, "more processes step no faster")
        config_checks.check_range(self, "reply_seconds", maximum=_MAX_REPLY_SECONDS, above=0)

    @property
    def worker_count(self) -> int:
        """Returns the max number of worker processes."""
        return self.num_workers or len(os.sched_getaffinity(0))

    @property
    def max_step_seconds(self) -> float:
        """See `EnvironmentConfig`; a worker steps one by one, and may restart within the step."""
        return 2 * self.reply_seconds * -(-self.num_envs // (self.num_workers or 1))

    def max_words(self) -> int:
        """Returns the words of the longest text in an observation."""
        return 0

    @abc.abstractmethod
    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """Returns a picklable function that creates one environment from its seed, in a worker.

        The environment may have the methods `render`, which returns an image, and
        `observation_offsets`, see `canonical_observations.Observation`.
        """

    def make(
        self, task: str, num_envs: int, seed: int, rendering: bool
    ) -> python_environments.PythonEnvironments:
        """See `EnvironmentConfig`; raises ImportError if the package is not installed."""
        if self.package and importlib.util.find_spec(self.package) is None:
            raise errors.MissingPackageError(self.missing_package)
        maker = self.maker(task, rendering)
        return python_environments.PythonEnvironments(self, maker, task, num_envs, seed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PythonConfig(WorkerConfig):
    """Configuration of Python environments that take keyword arguments."""

    num_envs: int = 16
    # Python literals or bare words. The values of a dictionary must survive JSON.
    arguments: str | Mapping[str, Any] = ""  # keywords of the constructor: "name=value, ..."
    text_length: int = 16  # words; of the longest text in an observation
    pickled_function: str = ""  # base64; creates an environment, see `laser_tf.train`

    frames_per_second: ClassVar[float] = 30.0

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "text_length", 1, 10_000)
        for name, value in self.keyword_arguments().items():
            if isinstance(self.arguments, Mapping) and not _survives_json({name: value}):
                raise errors.ConfigError(
                    f"arguments must have names and values that JSON keeps, got {name}={value!r}. "
                    f"Give arguments as a text, e.g. 'name={value!r}'."
                )

    @property
    def tasks(self) -> tuple[str, ...]:
        """See `EnvironmentConfig`; a pickled function is the only task."""
        return (self.task,) if self.pickled_function else super().tasks

    def user_code(self) -> tuple[str, ...]:
        """See `EnvironmentConfig`."""
        return (user_code.PICKLED,) if self.pickled_function else ()

    def maker(self, task: str, rendering: bool) -> Callable[..., dm_env.Environment]:
        """See `WorkerConfig`; this function calls `pickled_function`, or the path `task`."""
        arguments = self.keyword_arguments()
        return functools.partial(
            user_functions.call, self.pickled_function, task, arguments, self.suite
        )

    def max_words(self) -> int:
        """See `WorkerConfig`."""
        return self.text_length

    def keyword_arguments(self) -> dict[str, Any]:
        """Returns `arguments` as a dictionary; ValueError for text of another form."""
        if isinstance(self.arguments, Mapping):
            return dict(self.arguments)
        return parse_arguments(self.arguments)

    def protocol(self) -> dict[str, Any]:
        """See `EnvironmentConfig`."""
        arguments = {
            name: value if _survives_json(value) else repr(value)
            for name, value in self.keyword_arguments().items()
        }
        return {**super().protocol(), "arguments": arguments}


def _survives_json(value: Any) -> bool:
    """Returns whether JSON preserves a value; it changes tuples and sets."""
    try:
        return json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        return False


def parse_arguments(text: str) -> dict[str, Any]:
    """Parses "name=value, ..."; values are Python literals, anything else is a text.

    Raises:
      ConfigError: For a part without a name, or an open quote or bracket.
    """
    arguments = {}
    for part in _parts(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name.isidentifier() or name in arguments:
            raise errors.ConfigError(f"arguments must be name=value, ..., got {text!r}")
        arguments[name] = None if value.lower() == "none" else config_values.parse_value(value)
    return arguments


def _parts(text: str) -> list[str]:
    """Splits a text at commas outside quotes and brackets."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if depth or quote:
        raise errors.ConfigError(
            f"arguments must close all quotes and brackets, got {text!r}. Quote such texts, e.g. "
            'text="don\'t".'
        )
    return [part for part in parts if part.strip()]
