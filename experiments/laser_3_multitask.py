"""LASER, figure 3 on five games at once, with settings that differ a thousandfold.

Fixed before the first run: a member's score is the median over its games of the mean return of the
last 100 training episodes, where random play is 0 and LASER alone on the game is 1. All members are
reported. Conditions are compared by each sweep's best and median member, and by the number of
members at or below random play, each as the mean over seeds.
"""

from experiments import base, sweep_conditions

EXPERIMENT = base.Experiment(
    config="sweeps:minatar_multitask",
    command="sweep",
    conditions=(
        sweep_conditions.NO_REPLAY,
        # Differs from naive sharing in the sharing only.
        base.Condition(
            "a replay each, no trust region",
            sweep_conditions.OWN_REPLAY | sweep_conditions.NO_TRUST_REGION,
        ),
        sweep_conditions.SHARED_NO_TRUST_REGION,
        *(
            base.Condition(
                f"shared replay, b = {b}", {"agent.relevance": "implied", "agent.kl_threshold": b}
            )
            for b in (0.1, 0.03)
        ),
    ),
    draw=sweep_conditions.draw,
)
