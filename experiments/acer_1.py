"""ACER, figure 1: what replay is worth, by experience and by time, with and without trust region.

As in the paper, a replay ratio has a colour, and is dashed without the trust region.
"""

from experiments import base
from laser_tf.plotting import curves

_RATIOS = (0, 1, 4)  # updates on replay after each one on online unrolls

EXPERIMENT = base.Experiment(
    config="acer:minatar",
    tasks=("breakout", "space_invaders"),
    conditions=tuple(
        base.Condition(
            f"replay ratio {ratio}{', trust region' if trust_region else ''}",
            {"agent.trust_region": trust_region}
            | ({"replay.replay_ratio": float(ratio)} if ratio else {"replay.scheme": "online"}),
        )
        for trust_region in (True, False)
        for ratio in _RATIOS
    ),
    draw=curves.write_with_time,
)
