"""All agents on Pong, each by its own configuration."""

from experiments import base
from laser_tf.plotting import agents_table

EXPERIMENT = base.Experiment(
    config="laser:atari",
    tasks=("pong",),
    conditions=tuple(
        base.Condition(label, config=f"{label.lower()}:atari")
        for label in ("LASER", "IMPALA", "ACER", "R2D2", "Reactor")
    ),
    draw=agents_table.write,
)
