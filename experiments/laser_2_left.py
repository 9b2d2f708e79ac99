"""LASER, figure 2 left: what online experience in the batch is worth (section 5.3)."""

from experiments import base, sweep_conditions

_FRACTIONS = (0.875, 0.75, 0.5)

EXPERIMENT = base.Experiment(
    config="sweeps:minatar",
    command="sweep",
    tasks=("breakout", "space_invaders"),
    conditions=(
        base.Condition(
            "all from replay",
            sweep_conditions.OWN_REPLAY
            | {"agent.entropy_on_replay": True}
            # One update for each 2 unrolls of 20 agent steps, as in the other conditions.
            | {
                "replay.scheme": "replay_only",
                "replay.steps_per_update": sweep_conditions.ONLINE_UNROLLS * 20,
            },
        ),
        *(
            base.Condition(
                f"{fraction:.1%} replay",
                sweep_conditions.OWN_REPLAY | sweep_conditions.replayed(fraction),
            )
            for fraction in _FRACTIONS
        ),
        base.Condition(
            "0.0% replay",
            sweep_conditions.OWN_REPLAY
            | {"replay.scheme": "online", "replay.batch_size": sweep_conditions.ONLINE_UNROLLS},
        ),
    ),
    draw=sweep_conditions.draw,
)
