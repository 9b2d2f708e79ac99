"""LASER, figure 2 right: capacity of the replay (section 5.3)."""

from experiments import base, sweep_conditions

EXPERIMENT = base.Experiment(
    config="sweeps:minatar",
    command="sweep",
    tasks=("breakout", "space_invaders"),
    conditions=tuple(
        base.Condition(
            f"capacity {capacity:,}",
            sweep_conditions.OWN_REPLAY | {"replay.capacity": capacity},  # agent steps
        )
        for capacity in (10_000, 50_000, 250_000)
    ),
    draw=sweep_conditions.draw,
)
