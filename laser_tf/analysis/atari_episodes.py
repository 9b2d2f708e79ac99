"""The training episodes that a comparison on Atari is made of, in one small file.

It outlives the folders of the runs, and joins what machines without a common file system have
trained.
"""

import csv
import gzip
import io
import itertools
import logging
import pathlib
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from laser_tf import errors
from laser_tf.scores import dopamine
from laser_tf.workdir import atomic

FILE = "episodes.csv.gz"
_HEADER = ("game", "run", "trained_env_frames", "env_frames", "return")


class Run(NamedTuple):
    """One seed's episodes of one game, in the order in which they ended."""

    env_frames: np.ndarray  # int64 [E], at an episode's end
    returns: np.ndarray  # float64 [E], raw
    trained_env_frames: int  # that were learned from, those after the last episode included


Games = Mapping[str, Sequence[Run]]  # game -> one each seed


def write(path: pathlib.Path, games: Games) -> None:
    """Writes all episodes, the same bytes whenever they are the same.

    A file there with a run that these games lack is kept beside it, under a name with a number.
    """
    _keep_others(path, games)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_HEADER)
    for game, runs in games.items():
        for number, run in enumerate(runs, 1):
            episodes = zip(run.env_frames.tolist(), run.returns.tolist(), strict=True)
            writer.writerows((game, number, run.trained_env_frames, *row) for row in episodes)
    # It may be one of those that were just read.
    atomic.write(path, gzip.compress(text.getvalue().encode(), mtime=0))


def _keep_others(path: pathlib.Path, games: Games) -> None:
    """Renames a file that may be the only copy of a run."""
    if not path.exists():
        return
    try:
        lost = [game for game, runs in read(path).items() if _lacks(games.get(game, ()), runs)]
    except errors.UserError:
        lost = ["what cannot be read"]
    if lost:
        names = (path.with_name(f"{number}_{path.name}") for number in itertools.count(1))
        kept = next(name for name in names if not name.exists())
        path.rename(kept)
        logging.warning("%s has runs of %s that are not here: kept as %s", path, lost[0], kept)


def _lacks(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    """Whether one of the others is no run of these, or one that has gone on longer there."""
    return any(
        not any(_is_same(run, other) and len(run.returns) >= len(other.returns) for run in runs)
        for other in others
    )


def read(path: pathlib.Path) -> dict[str, list[Run]]:
    """What `write` wrote.

    Raises:
      UserError: if the file is not there, or not one of `write`'s; the message names it.
    """
    try:
        rows = list(csv.reader(gzip.decompress(path.read_bytes()).decode().splitlines()))
    except (OSError, EOFError, ValueError, zlib.error, csv.Error) as error:  # or damaged
        raise errors.UserError(f"cannot read {path}: {error}") from None
    if len(rows) < 2 or tuple(rows[0]) != _HEADER:
        raise errors.UserError(
            f"{path} holds no episodes of a comparison: name the {FILE} of a report"
        )
    games: dict[str, list[Run]] = {}
    try:
        for (game, _, trained), of_run in itertools.groupby(rows[1:], lambda row: row[:3]):
            frames, returns = zip(*((int(row[3]), float(row[4])) for row in of_run), strict=True)
            run = Run(np.array(frames), np.array(returns), int(trained))
            games.setdefault(game, []).append(run)
    except (IndexError, ValueError):
        raise errors.UserError(
            f"{path} is damaged: its rows are not {', '.join(_HEADER)}"
        ) from None
    if unknown := games.keys() - dopamine.curves().keys():
        raise errors.UserError(f"{path} holds {min(unknown)}, of which Dopamine has no curves")
    return games


def join(parts: Sequence[Games]) -> Games:
    """The games of all parts; of a game in several the runs of all, each as a seed of its own.

    Raises:
      UserError: if a run is in two parts, whose seed would then count twice, or if the games end up
        with different numbers of runs, over which no measure of all games is defined.
    """
    joined: dict[str, list[Run]] = {}
    for part in parts:
        for game, runs in part.items():
            known = joined.setdefault(game, [])
            if any(_is_same(run, other) for run in runs for other in known):
                raise errors.UserError(
                    f"a run of {game} is given twice: leave out a file, or its --game"
                )
            known.extend(runs)
    most, fewest = (pick(joined, key=lambda game: len(joined[game])) for pick in (max, min))
    if len(joined[most]) != len(joined[fewest]):
        raise errors.UserError(
            f"{most} has {len(joined[most])} runs and {fewest} {len(joined[fewest])}: give as many "
            "of each game"
        )
    return joined


def _is_same(one: Run, other: Run) -> bool:
    """Whether these are one run's, of which the shorter may have been read while it went on."""
    count = min(len(one.returns), len(other.returns))
    return np.array_equal(one.env_frames[:count], other.env_frames[:count]) and np.array_equal(
        one.returns[:count], other.returns[:count]
    )
