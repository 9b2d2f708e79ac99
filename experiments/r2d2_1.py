"""R2D2, figure 1: where replayed sequences start, and whether a burn-in comes first (section 3)."""

from experiments import base
from laser_tf.plotting import r2d2

EXPERIMENT = base.Experiment(
    config="r2d2:minatar",
    tasks=("breakout", "space_invaders"),
    conditions=(
        base.Condition("zero state", {"replay.core_state": "zero", "replay.burn_in": 0}),
        base.Condition("burn-in", {"replay.core_state": "zero"}),
        base.Condition("stored state", {"replay.core_state": "stored", "replay.burn_in": 0}),
        base.Condition("stored state, burn-in", {"replay.core_state": "stored"}),
    ),
    draw=r2d2.write_staleness,
)
