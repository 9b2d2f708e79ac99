"""All agents on the same MinAtar games, each by its own configuration, for equal env frames."""

from experiments import base
from laser_tf.plotting import agents_table

EXPERIMENT = base.Experiment(
    config="laser:minatar",
    tasks=("breakout", "space_invaders"),
    conditions=tuple(
        base.Condition(label, config=f"{label.lower()}:minatar")
        for label in ("LASER", "IMPALA", "ACER", "R2D2", "Reactor")
    ),
    overrides={"run.env_frames": 1_000_000},
    draw=agents_table.write,
)
