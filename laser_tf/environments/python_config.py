"""Configuration of environments that are Python objects: what their suites have in common."""

import dataclasses
import importlib.util
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import dm_env

from laser_tf import config_checks, config_values, errors
from laser_tf.environments import environment_config, python_environments

_MAX_REPLY_SECONDS = 86_400.0  # A day; waits must be finite.


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerConfig(environment_config.EnvironmentConfig):
    """Configuration of environments that run in worker processes, each a `dm_env.Environment`.

    A subclass defines `maker`, the function that creates one environment.
    """

    num_workers: int = 0  # processes; they step the environments; 0: as many as cores
    reply_seconds: float = 60.0  # seconds; if an environment takes longer, its worker is restarted

    engine_repeats_actions: ClassVar[bool] = False  # A step takes `action_repeat` frames.
    package: ClassVar[str] = ""  # Package that workers import.
    missing_package: ClassVar[str] = ""  # Message if it is not installed.

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "num_workers", 0, 1_024, "more processes step no faster")
        if not 0 < self.reply_seconds <= _MAX_REPLY_SECONDS:
            raise errors.ConfigError(
                f"reply_seconds must be above 0 and at most {_MAX_REPLY_SECONDS:g}, got "
                f"{self.reply_seconds}."
            )

    @property
    def max_step_seconds(self) -> float:
        """See `EnvironmentConfig`.

        A worker steps its environments one by one, and restarts within the step if it fails.
        """
        return 2 * self.reply_seconds * -(-self.num_envs // (self.num_workers or 1))

    def max_words(self) -> int:
        """Returns the words of the longest text in an observation."""
        return 0

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """Returns a picklable function that creates one environment from its seed, in a worker.

        The environment may have a method `render`, which returns an image, and
        `observation_offsets`, see `canonical_observations.Observation`.
        """
        raise NotImplementedError

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
    # Values as in Python; a bare word is a text. A dictionary is one of what JSON can hold.
    arguments: str | Mapping[str, Any] = ""  # keywords of what makes it: "name=value, ..."
    text_length: int = 16  # words; of the longest text in an observation

    frames_per_second: ClassVar[float] = 30.0

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "text_length", 1, 10_000, "no task shows more")
        for name, value in self.keyword_arguments().items():
            if isinstance(self.arguments, Mapping) and not _survives_json(value):
                raise errors.ConfigError(
                    f"arguments have {name}={value!r}, which is something else once it is read "
                    "from a run's config.json: give arguments as a text, "
                    f"'{name}={value!r}'"
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
    """Keyword arguments of "name=value, ...".

    Values are Python's (numbers, texts in quotes, tuples, lists, dictionaries, True or true, ...);
    anything else is taken as a text.

    Raises:
      ValueError: for a part without a name.
    """
    arguments = {}
    for part in _parts(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name.isidentifier() or name in arguments:
            raise errors.ConfigError(f"arguments are {text!r}: use name=value, ..., each name once")
        arguments[name] = None if value.lower() == "none" else config_values.parse_value(value)
    return arguments


def _parts(text: str) -> list[str]:
    """The text between commas, except those in quotes or brackets."""
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
    return [part for part in parts if part.strip()]
