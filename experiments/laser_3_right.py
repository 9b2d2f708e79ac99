"""LASER, figure 3 right: population-based training with separate and shared replay."""

from experiments import base, sweep_conditions

EXPERIMENT = base.Experiment(
    config="sweeps:minatar",
    command="sweep",
    tasks=("breakout", "space_invaders"),
    conditions=(
        sweep_conditions.NO_REPLAY,
        sweep_conditions.SEPARATE,
        sweep_conditions.SHARED,
    ),
    overrides={
        "population.method": "pbt",
        # A copied member may get older than the run: its schedule must not end with the run.
        "learner.learning_rate_schedule": "constant",
    },
    draw=sweep_conditions.draw,
)
