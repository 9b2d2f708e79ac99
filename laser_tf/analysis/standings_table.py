"""Labels by all measures over the same tasks: normalised scores, mean rank and Elo."""

import math
from collections.abc import Mapping

import numpy as np

from laser_tf.analysis import panels, sweep_results
from laser_tf.scores import ranking

COLUMNS = ("label", "median_normalised", "mean_normalised", "mean_rank", "elo")

Standings = Mapping[str, ranking.Standing]  # by label


def rows(standings: Standings) -> list[list[str]]:
    """Of a CSV with `COLUMNS`; what there is not is left empty."""
    return [
        [label, *panels.cells(math.nan if value is None else value for value in standing)]
        for label, standing in standings.items()
    ]


def of_sweeps(results: sweep_results.SuiteResults) -> Standings:
    """Labels by the final scores of each replica's best agent, mean over the replicas.

    A label of which a replica has not played all tasks is left out, and all of them are unless two
    labels have two tasks: otherwise there is nothing to rank.
    """
    tasks, scores = results.protocol.tasks, {}
    for condition in results.conditions:
        best = [_best(replica) for replica in condition.replicas]
        if all(set(of_task) == set(tasks) for of_task in best):
            scores[condition.label] = {
                task: float(np.mean([of_task[task] for of_task in best])) for task in tasks
            }
    if min(len(scores), len(tasks)) < 2:
        return {}
    return ranking.standings(scores, scores if results.protocol.is_normalised else None)


def _best(replica: sweep_results.Replica) -> Mapping[str, float]:
    """Task -> final score of the agent whose score is the best; empty without any."""
    scored = [agent for agent in replica.agents if np.isfinite(agent.score)]
    return max(scored, key=lambda agent: agent.score).task_scores if scored else {}
