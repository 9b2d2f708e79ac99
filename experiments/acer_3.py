"""ACER, ablation of the continuous agent: one part at a time is removed."""

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="acer:control",
    tasks=("cheetah/run",),
    conditions=(
        base.Condition("ACER"),
        base.Condition("no Retrace", {"agent.lambda_": 0.0}),  # one-step targets
        base.Condition("no SDN", {"agent.dueling_samples": 0}),  # Q = V + A
        # No action's ratio reaches this clip.
        base.Condition("no truncation", {"agent.truncation": 1e6}),
        base.Condition("no trust region", {"agent.trust_region": False}),
    ),
    overrides={"environment.suite": "dm_control"},
    draw=curves.write,
)
