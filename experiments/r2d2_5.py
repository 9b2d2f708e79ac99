"""R2D2, figure 5: what remains of agents whose policy remembers the last k steps only.

The strategies are those of section 5, which has no burn-in.
"""

import functools

from experiments import base
from laser_tf.plotting import r2d2

_HISTORY_LENGTHS = (80, 60, 50, 40, 20, 10, 1)  # agent steps

EXPERIMENT = base.Experiment(
    config="r2d2:tmaze",
    conditions=(
        base.Condition("zero state", {"replay.core_state": "zero", "replay.burn_in": 0}),
        base.Condition("stored state", {"replay.core_state": "stored", "replay.burn_in": 0}),
    ),
    history_lengths=_HISTORY_LENGTHS,
    draw=functools.partial(r2d2.write_memory, history_lengths=_HISTORY_LENGTHS),
)
