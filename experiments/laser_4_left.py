"""LASER, figure 4 left: larger clips are no substitute for the trust region (section A.1)."""

from experiments import base, sweep_conditions

EXPERIMENT = base.Experiment(
    config="sweeps:minatar",
    command="sweep",
    tasks=("breakout", "space_invaders"),
    conditions=(
        sweep_conditions.NO_REPLAY,
        *(
            base.Condition(
                f"shared replay, rho_bar {rho_bar}",
                sweep_conditions.NO_TRUST_REGION | {"agent.rho_bar": rho_bar},
            )
            for rho_bar in (1.0, 2.0, 4.0)
        ),
    ),
    draw=sweep_conditions.draw,
)
