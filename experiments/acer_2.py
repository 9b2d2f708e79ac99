"""ACER, figure 2: continuous control against the baselines of section 6."""

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="acer:control",
    tasks=("cartpole/swingup", "reacher/easy", "cheetah/run"),
    conditions=(
        base.Condition("ACER"),
        base.Condition("Trust-TIS", config="acer:control_trust_tis"),
        base.Condition("TIS", config="acer:control_tis"),
        base.Condition("Trust-A3C", config="acer:control_trust_a3c"),
        base.Condition("A3C", config="acer:control_a3c"),
    ),
    overrides={"environment.suite": "dm_control"},
    draw=curves.write,
)
