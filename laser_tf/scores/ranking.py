"""Mean rank and Elo, in which every task has the same weight.

Gruslys et al. 2018 (Reactor), section 6.2: the tasks with the largest scores dominate a mean of
normalised scores, and a median ignores all tasks but the middle ones. Ranks and wins do neither.
The paper does not define ties or how ratings are fitted; the choices here reproduce its table 2
from its table 5 (see `testing/scores/ranking_test.py` for the differences).

Scores are tables [agents, tasks] with names as index and columns.
"""

import numpy as np
import pandas as pd
from scipy import optimize, special
from scipy.sparse import csgraph

_SCALE = 400 / np.log(10)  # "400 corresponds to the odds of winning of 10:1"


def standings(scores: pd.DataFrame, normalised: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compares agents by all four measures, best mean rank first.

    Args:
      scores: Raw or normalised scores.
      normalised: The same scores normalised; None, or NaNs, without references.

    Returns:
      Columns label, median_normalised and mean_normalised over tasks (not capped; NaN without
      references), mean_rank and elo.
    """
    if normalised is None:
        normalised = scores * np.nan
    table = pd.DataFrame(
        {
            "median_normalised": normalised.median(axis=1, skipna=False),
            "mean_normalised": normalised.mean(axis=1, skipna=False),
            "mean_rank": mean_ranks(scores),
            "elo": elo_ratings(scores),
        },
        index=scores.index,
    )
    return table.sort_values("mean_rank", kind="stable").rename_axis("label").reset_index()


def mean_ranks(scores: pd.DataFrame) -> pd.Series:
    """Returns each agent's mean over tasks of its rank, 1 for the best (section 6.2).

    Agents of equal score share the last of their places: a tie at the top is rank 2 for both.
    """
    _check(scores)
    return scores.rank(ascending=False, method="max").mean(axis=1)


def elo_ratings(scores: pd.DataFrame) -> pd.Series:
    """Returns each agent's Elo rating by wins on tasks (section 6.2), with mean 0.

    The higher score on a task wins; a tie is half a win for both. Ratings maximise the likelihood
    of these wins (Bradley and Terry 1952), if i wins against j with odds 10^((e_i - e_j) / 400).
    Ratings are NaN if some agents win every task against all others: the likelihood then grows with
    the distance.
    """
    _check(scores)
    values = scores.to_numpy(float)
    difference = values[:, None] - values[None]
    wins = (np.sign(difference) + 1).sum(axis=2) / 2  # [agents, agents]
    np.fill_diagonal(wins, 0.0)
    # A chain of wins has to lead from each agent to every other one (Ford 1957).
    if csgraph.connected_components(wins > 0, connection="strong")[0] > 1:
        return pd.Series(np.nan, scores.index)

    def negative_log_likelihood(x: np.ndarray) -> tuple[float, np.ndarray]:
        lead = x[:, None] - x[None]
        surplus = wins - (wins + wins.T) * special.expit(lead)  # wins that were not expected
        return (wins * np.logaddexp(0.0, -lead)).sum(), -surplus.sum(axis=1)

    found = optimize.minimize(
        negative_log_likelihood, np.zeros(len(wins)), jac=True, options={"gtol": 1e-9}
    )
    return pd.Series(_SCALE * (found.x - found.x.mean()), scores.index)


def _check(scores: pd.DataFrame) -> None:
    """Raises ValueError if there are no scores, or a score is not finite."""
    if scores.empty:
        raise ValueError("scores must hold an agent and a task, got none.")
    flat = scores.stack()
    if len(invalid := flat[~np.isfinite(flat.to_numpy(float))]):
        (agent, task), value = next(iter(invalid.items()))
        raise ValueError(f"score of {agent} on {task} must be finite, got {value}.")
