"""Faults of environments: logged once for each environment, counted, and limited in number."""

import collections
import logging
import pathlib
import time
import traceback

import numpy as np

from laser_tf import errors

FILE = "environment_errors.txt"  # Tracebacks, in the run directory.
KINDS = REWARDS, DISCOUNTS, OBSERVATIONS, RESTARTS = (
    "non_finite_rewards",
    "non_finite_discounts",
    "non_finite_observations",
    "restarted_environments",
)


class EnvironmentFailedError(errors.UserError):
    """An environment cannot continue; the message names environment, reason and remedy."""


class UnsupportedSpaceError(errors.ConfigError):
    """Agents cannot use an environment or a part of its specs."""


class EnvironmentCreationError(errors.ConfigError):
    """An environment cannot be created, or agents cannot use it.

    Attributes:
      reason: One line.
      details: Traceback of user code, or "".
    """

    def __init__(self, name: str, reason: str, details: str = ""):
        shown = "; launch.check_environment prints its traceback" if details else ""
        super().__init__(f"{name} cannot be used: {reason}{shown}")
        if details:  # An uncaught error is printed with its notes.
            self.add_note(details)
        self.name, self.reason, self.details = name, reason, details

    def __reduce__(self):
        return type(self), (self.name, self.reason, self.details)  # For Ray.


class Faults:
    """The faults of a batch of N environments.

    A fault ends an episode as a time limit does. An error is raised if too many episodes in a row
    of one environment end by a fault.

    Attributes:
      counts: Number of faults by kind.
      episode_steps: int [N], agent steps of each unfinished episode.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        name: str = "the environment",
        limit: int = 20,  # Max episodes in a row of one environment that a fault ends.
        folder: pathlib.Path | None = None,  # For tracebacks.
    ):
        self.name = name
        self._limit = limit
        self._folder = folder
        self.counts: collections.Counter[str] = collections.Counter()
        self.episode_steps = np.zeros(num_envs, int)
        self._is_broken = np.zeros(num_envs, bool)  # A fault ends the episode.
        self._in_a_row = np.zeros(num_envs, int)  # Episodes that a fault ended.
        self._logged: set[tuple[int, str]] = set()

    def advance(self, is_first: np.ndarray) -> None:
        """Counts the next step, whose `is_first` is bool [N]."""
        self._in_a_row[is_first & ~self._is_broken & (self.episode_steps > 0)] = 0
        self._is_broken &= ~is_first
        self.episode_steps = np.where(is_first, 0, self.episode_steps + 1)

    def note(
        self, index: int, kind: str, what: str, details: str = "", step: int | None = None
    ) -> None:
        """Records a fault of one of `KINDS`, which ends the episode.

        `details` is its traceback. `step` counts from the first step of the episode; None for the
        newest complete step.

        Raises:
          EnvironmentFailedError: If the limit is exceeded.
        """
        self.counts[kind] += 1
        if step == 0 and not self._is_broken[index]:  # The last episode ended without a fault.
            self._in_a_row[index] = 0
        if kind == RESTARTS or not self._is_broken[index]:  # Each start is an attempt.
            self._in_a_row[index] += 1
        self._is_broken[index] = True
        what = self._with_step(index, what, step)
        fault = f"environment {index} of {self.name}: {what}"
        is_new = (index, kind) not in self._logged
        is_over_limit = self._in_a_row[index] > self._limit
        kept = self._keep_traceback(fault, details) if details and (is_new or is_over_limit) else ""
        if is_over_limit:
            raise EnvironmentFailedError(
                f"{fault}; {self._in_a_row[index]} episodes in a row ended by a fault{kept}: fix "
                f"the environment, or raise environment.max_broken_episodes ({self._limit})"
            )
        if is_new:
            self._logged.add((index, kind))
            logging.warning(
                "%s: the episode ends as by a time limit%s; later faults are only counted, in "
                "environment/%s", fault, kept, kind,
            )  # fmt: skip

    def note_non_finite(self, kind: str, name: str, values: np.ndarray) -> np.ndarray:
        """Records a fault of environments with a value [N, ...] that is not finite.

        `name` describes the values. Returns a mask bool [N] of these environments.
        """
        finite = np.isfinite(values)
        if finite.all():
            return np.zeros(len(values), bool)
        is_faulty = ~finite.reshape(len(values), -1).all(1)
        for index in np.flatnonzero(is_faulty).tolist():
            value = values[index][~finite[index]].flat[0] if values.ndim > 1 else values[index]
            self.note(index, kind, f"its {name} is {value}")
        return is_faulty

    def _with_step(self, index: int, what: str, step: int | None) -> str:
        step = self.episode_steps[index] if step is None else step
        return f"{what} (step {step} of its episode)"

    def failure(self, error: Exception) -> EnvironmentFailedError:
        """Returns the error to raise from `error` if the environments cannot continue."""
        kept = self._keep_traceback(
            f"{self.name} failed", "".join(traceback.format_exception(error))
        )
        return EnvironmentFailedError(f"{self.name} failed: {describe(error)}{kept}")

    def _keep_traceback(self, title: str, details: str) -> str:
        """Appends a traceback to the file and returns a note for the message."""
        if self._folder is None:
            return ""
        path = self._folder / FILE
        entry = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {title}\n{details}\n"
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(errors.printable(entry))
        except OSError as error:
            return f" (its traceback cannot be written: {error.strerror})"
        return f" (traceback in {path})"


def describe(error: BaseException) -> str:
    """Returns an error as one line with the place where it was raised."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    place = (
        f" ({pathlib.Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    )
    return errors.printable(" ".join(text.split()) + place)
