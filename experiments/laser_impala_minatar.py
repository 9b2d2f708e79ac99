"""LASER and IMPALA on MinAtar, for equal env frames."""

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="laser:minatar",
    tasks=("breakout", "space_invaders"),
    conditions=(
        base.Condition("LASER"),
        base.Condition("IMPALA", config="impala:minatar"),
    ),
    overrides={"run.env_frames": 300_000},
    draw=curves.write,
)
