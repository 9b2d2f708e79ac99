"""LASER on LunarLander-v3, by its configuration and with a longer horizon."""

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="laser:gymnasium",
    tasks=("LunarLander-v3",),
    conditions=(
        base.Condition("LASER"),
        base.Condition(
            "discount 0.995",
            {
                "agent.discount": 0.995,
                "agent.lambda_": 0.95,
                "learner.learning_rate": 5e-4,
                "run.env_frames": 1_000_000,
            },
        ),
        base.Condition("discount 0.999", {"agent.discount": 0.999}),
    ),
    overrides={"run.env_frames": 700_000},
    draw=curves.write,
)
