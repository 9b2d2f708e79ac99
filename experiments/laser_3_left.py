"""LASER, figure 3 left: shared experience with and without the trust region (section 5.4)."""

from experiments import base, sweep_conditions

EXPERIMENT = base.Experiment(
    config="sweeps:minatar",
    command="sweep",
    tasks=("breakout", "space_invaders"),
    conditions=(
        sweep_conditions.NO_REPLAY,
        sweep_conditions.SHARED_NO_TRUST_REGION,
        sweep_conditions.SHARED,
    ),
    draw=sweep_conditions.draw,
)
