"""Reactor, figure 3 left: the agent without one of its parts at a time."""

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="reactor:minatar",
    tasks=("breakout", "space_invaders"),
    conditions=(
        base.Condition("Reactor"),
        base.Condition("no distributional Retrace", {"agent.distributional": False}),
        base.Condition(
            "TISLR for beta-LOO",
            {"agent.policy_gradient": "tislr", "agent.truncation": 10.0},  # c: ACER's
        ),
        base.Condition(
            "no prioritisation",
            {"replay.scheme": "sequences", "replay.priority_exponent": 0.0},
        ),
    ),
    draw=curves.write,
)
