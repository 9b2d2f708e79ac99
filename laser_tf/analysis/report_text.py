"""How the report's pictures and tables name and print things."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from laser_tf.analysis import sweep_results


def hyperparameter_names(of_agents: Sequence[sweep_results.Agent]) -> list[str]:
    """All that differ between agents, in the sweep's order; all where nothing differs."""
    names = list(dict.fromkeys(name for agent in of_agents for name in agent.hyperparameters))
    varied = [
        name
        for name in names
        if len({str(agent.hyperparameters.get(name)) for agent in of_agents}) > 1
    ]
    return varied or names


def short_name(name: str | None) -> str:
    """`learner.learning_rate` -> "learning rate"."""
    return (name or "").rpartition(".")[2].replace("_", " ")


def format_value(value: Any) -> str:
    """A hyper-parameter in few digits."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return "–" if value is None else str(value)


def format_score(protocol: sweep_results.Protocol, score: float) -> str:
    """A score with its unit; a dash where there is none."""
    if not np.isfinite(score):
        return "–"
    return f"{100 * score:.1f}%" if protocol.is_normalised else f"{score:,.2f}"
