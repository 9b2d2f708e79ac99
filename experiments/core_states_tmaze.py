"""Recurrent LASER in the T-maze: recomputed core states against stored ones and zeros."""

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="laser:tmaze",
    conditions=(
        base.Condition("recomputed states"),
        *(
            base.Condition(
                f"{state} states", {"replay.scheme": "mixed", "replay.core_state": state}
            )
            for state in ("stored", "zero")
        ),
    ),
    draw=curves.write,
)
