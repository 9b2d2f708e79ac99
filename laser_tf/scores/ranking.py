"""Mean rank and Elo: every task counts alike, the easiest and the hardest too.

Gruslys et al. 2018 (Reactor), section 6.2: a mean of normalised scores is one of the tasks with the
largest scores, a median passes over all but those in the middle. Ranks and wins do neither. The
paper leaves open what a tie is and how ratings are fitted; what is done here is what its table 2
comes to from its table 5 (`testing/scores/ranking_test.py` says how closely).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from laser_tf.scores import aggregates

Scores = Mapping[str, Mapping[str, float]]  # agent -> task -> score, of the same tasks for each

_SCALE = 400 / np.log(10)  # "400 corresponds to the odds of winning of 10:1"
_ITERATIONS, _TOLERANCE = 100, 1e-10


class Standing(NamedTuple):
    """What one of several agents comes to on the same tasks."""

    median: float | None  # over tasks of normalised scores; None without
    mean: float | None  # of the same, not capped
    mean_rank: float
    elo: float | None  # see `elo_ratings`


def standings(scores: Scores, normalised: Scores | None = None) -> dict[str, Standing]:
    """Agent -> what it comes to, by all four measures; best mean rank first.

    Args:
      scores: raw or normalised.
      normalised: the same normalised, where there are references.

    Raises:
      ValueError: as `mean_ranks`.
    """
    ranks, ratings = mean_ranks(scores), elo_ratings(scores)
    return {
        agent: Standing(
            None if normalised is None else aggregates.median_normalised(normalised[agent]),
            None if normalised is None else aggregates.mean_normalised(normalised[agent]),
            ranks[agent],
            None if ratings is None else ratings[agent],
        )
        for agent in sorted(ranks, key=ranks.__getitem__)
    }


def mean_ranks(scores: Scores) -> dict[str, float]:
    """Agent -> mean over tasks of its rank among the agents, 1 for the best (section 6.2).

    Agents of equal score share the last of their places: a tie at the top is rank 2 for both.

    Args:
      scores: raw or normalised, which makes no difference.

    Raises:
      ValueError: without agents or tasks, for agents of different tasks, or for a score that is no
        finite number.
    """
    table = _table(scores)
    ranks = (table[:, None] <= table[None]).sum(axis=1)  # [agents, tasks]: who is as good or better
    return dict(zip(scores, ranks.mean(axis=1).tolist(), strict=True))


def elo_ratings(scores: Scores, zero: str | None = None) -> dict[str, float] | None:
    """Agent -> Elo rating by wins on tasks (section 6.2).

    An agent wins against another on a task where its score is the higher one; a tie is half a win
    for each. Ratings are those by which these wins are likeliest (Bradley and Terry 1952), if
    i wins against j with the odds 10^((e_i - e_j) / 400).

    Args:
      scores: raw or normalised, which makes no difference.
      zero: the agent whose rating is 0, the paper's is the human; None: the mean is 0.

    Returns:
      None where no ratings are the likeliest: some agents win every task against all the others,
      and the further apart they are the better.

    Raises:
      ValueError: as `mean_ranks`; or if `zero` is none of the agents.
    """
    table = _table(scores)
    if zero is not None and zero not in scores:
        raise ValueError(f"zero is {zero!r}: use one of {', '.join(scores)}")
    wins = (table[:, None] > table[None]).sum(axis=2) + 0.5 * (table[:, None] == table[None]).sum(
        axis=2
    )
    np.fill_diagonal(wins, 0.0)
    if not _has_likeliest(wins):
        return None
    ratings = _SCALE * _log_strengths(wins)
    ratings -= ratings.mean() if zero is None else ratings[list(scores).index(zero)]
    return dict(zip(scores, ratings.tolist(), strict=True))


def _has_likeliest(wins: np.ndarray) -> bool:
    """Whether from each agent a chain of wins leads to every other (Ford 1957)."""
    reached = np.eye(len(wins), dtype=bool) | (wins > 0)
    for _ in wins:
        reached = reached @ reached
    return bool(reached.all())


def _log_strengths(wins: np.ndarray) -> np.ndarray:
    """The likeliest x [A], of mean 0, if i wins against j with probability sigmoid(x_i - x_j).

    Newton's steps, halved while the likelihood would fall: it is concave.
    """
    x, games = np.zeros(len(wins)), wins + wins.T
    for _ in range(_ITERATIONS):
        chance = np.exp(-np.logaddexp(0.0, x[None] - x[:, None]))  # [A, A], of i against j
        gradient = (wins - games * chance).sum(axis=1)
        weights = games * chance * chance.T
        # The mean is free: the ones keep it at 0.
        hessian = np.diag(weights.sum(axis=1)) - weights + 1.0
        step = np.linalg.solve(hessian, gradient)
        while _log_likelihood(wins, x + step) < _log_likelihood(wins, x) - _TOLERANCE:
            step /= 2
        x = x + step
        if np.abs(step).max() < _TOLERANCE:
            break
    return x


def _log_likelihood(wins: np.ndarray, x: np.ndarray) -> float:
    return -float((wins * np.logaddexp(0.0, x[None] - x[:, None])).sum())


def _table(scores: Scores) -> np.ndarray:
    """Scores float64 [agents, tasks]."""
    if not scores or not all(scores.values()):
        raise ValueError("there are no scores: pass those of one agent and one task at least")
    first = next(iter(scores.values()))
    for agent, of_agent in scores.items():
        different = sorted(of_agent.keys() ^ first.keys())
        if different:
            raise ValueError(f"not all agents have {different[0]}: pass the same tasks for each")
        for task, score in of_agent.items():
            if score is None or not np.isfinite(score):
                raise ValueError(f"the score of {agent} on {task} is {score}: pass a finite number")
    return np.array([[of_agent[task] for task in first] for of_agent in scores.values()], float)
