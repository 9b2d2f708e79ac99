"""Returns that Dopamine has published of its agents on 55 Atari games.

`dopamine_curves.csv` is taken from Dopamine's baselines (Castro et al. 2018; Apache License 2.0;
https://github.com/google/dopamine, baselines/atari/data): raw returns, mean of five seeds. A column
is named by env frames: its values are means over the training episodes of the million frames that
end there (Dopamine's iteration), epsilon 0.01 included. Defender and surround are not among them.
"""

import csv
import functools
import pathlib

AGENTS = ("DQN", "Rainbow", "IQN")
SEEDS = 5  # of each agent, of which the file holds the mean
WINDOW = 1_000_000  # env frames that a mean is taken over

_CURVES = pathlib.Path(__file__).with_name("dopamine_curves.csv")


@functools.cache
def curves() -> dict[str, dict[str, dict[int, float]]]:
    """Game -> agent -> env frames, ascending -> return."""
    games: dict[str, dict[str, dict[int, float]]] = {}
    with _CURVES.open() as lines:
        for row in csv.DictReader(lines):
            game, agent = row.pop("game"), row.pop("agent")
            points = {int(frames): float(value) for frames, value in row.items()}
            games.setdefault(game, {})[agent] = points
    return games
