"""What goes wrong in games: told once of each game, counted, and given up after a limit."""

import collections
import logging
import pathlib
import time
import traceback

import numpy as np

from laser_tf import errors

FILE = "environment_errors.txt"  # tracebacks, in a run's folder
KINDS = REWARDS, DISCOUNTS, OBSERVATIONS, RESTARTS = (
    "non_finite_rewards",
    "non_finite_discounts",
    "non_finite_observations",
    "restarted_games",
)
STARTED_AGAIN = "; it is started again"  # what a message of `RESTARTS` ends with


class EnvironmentFailedError(errors.UserError):
    """A game cannot be played on; the message names it, the reason and the remedy."""


class UnsupportedSpaceError(errors.ConfigError):
    """What agents cannot read or do, and why: one line."""


class EnvironmentCreationError(errors.ConfigError):
    """An environment cannot be made, or no agent can play it.

    Attributes:
      name: of the environment.
      reason: one line.
      details: a traceback, where user code raised; or "".
    """

    def __init__(self, name: str, reason: str, details: str = ""):
        shown = "; launch.check_environment prints its traceback" if details else ""
        super().__init__(f"{name} cannot be played: {reason}{shown}")
        self.name, self.reason, self.details = name, reason, details

    def __reduce__(self):
        return type(self), (self.name, self.reason, self.details)  # Ray hands it on


class Faults:
    """The faults of a batch of N games.

    A fault ends a game's episode as a time limit does. A game whose episodes end like that too
    often in a row is given up: it does not mend itself, and nobody learns from it.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        name: str = "the environment",
        limit: int = 20,
        folder: pathlib.Path | None = None,
    ):
        """Starts without faults.

        Args:
          num_envs: N.
          name: of the environment, for messages.
          limit: episodes of one game in a row that a fault ended, after which it is given up.
          folder: gets the file of tracebacks; None: they are not kept.
        """
        self.name = name
        self._limit = limit
        self._folder = folder
        self.counts: collections.Counter[str] = collections.Counter()  # of each kind of fault
        self._steps = np.zeros(num_envs, int)  # of the games' episodes
        self._is_broken = np.zeros(num_envs, bool)  # whether a fault ends the game's episode
        self._in_a_row = np.zeros(num_envs, int)  # episodes that a fault ended
        self._told: set[tuple[int, str]] = set()

    def follow(self, is_first: np.ndarray) -> None:
        """Takes which games' episodes begin with the next step, bool [N]."""
        self._in_a_row[is_first & ~self._is_broken & (self._steps > 0)] = 0
        self._is_broken &= ~is_first
        self._steps = np.where(is_first, 0, self._steps + 1)

    def note(self, game: int, kind: str, what: str, details: str = "") -> None:
        """Takes a fault, which ends the game's episode.

        Args:
          game: its index.
          kind: one of this module's; under this name it is counted.
          what: happened, in a few words.
          details: a traceback.

        Raises:
          EnvironmentFailedError: if it was one too many.
        """
        self.counts[kind] += 1
        if kind == RESTARTS or not self._is_broken[game]:  # each start of a game is an attempt
            self._in_a_row[game] += 1
        self._is_broken[game] = True
        fault = f"game {game} of {self.name}: {what} (step {self._steps[game]} of its episode)"
        is_new = (game, kind) not in self._told
        is_given_up = self._in_a_row[game] > self._limit
        kept = self.keep(fault, details) if details and (is_new or is_given_up) else ""
        if is_given_up:
            raise EnvironmentFailedError(
                f"{fault}; {self._in_a_row[game]} episodes in a row have broken off{kept}: mend "
                f"the environment, or raise environment.max_broken_episodes ({self._limit})"
            )
        if is_new:
            self._told.add((game, kind))
            logging.warning(
                "%s: the episode ends there as by a time limit%s; more of it is only counted, in "
                "environment/%s", fault, kept, kind,
            )  # fmt: skip

    def failure(self, error: Exception) -> EnvironmentFailedError:
        """What to raise, from `error`, where the games cannot go on."""
        kept = self.keep(f"{self.name} failed", "".join(traceback.format_exception(error)))
        return EnvironmentFailedError(f"{self.name} failed: {describe(error)}{kept}")

    def keep(self, title: str, details: str) -> str:
        """Appends a traceback to the file; returns what a message says of it, or of its failure."""
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
    """An error as one line, with the place where it was raised."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    place = (
        f" ({pathlib.Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    )
    return errors.printable(" ".join(text.split()) + place)
