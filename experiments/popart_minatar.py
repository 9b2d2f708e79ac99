"""PopArt (Hessel et al. 2019): one agent on five games whose rewards differ a hundredfold."""

import functools

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="laser:minatar_multitask",
    conditions=(
        base.Condition("PopArt"),
        base.Condition("no PopArt", {"agent.popart": False}),
        base.Condition("clipped rewards", {"agent.popart": False, "agent.reward_clip": "unit"}),
    ),
    draw=functools.partial(curves.write, metric="episode/median_single_task_normalised"),
)
