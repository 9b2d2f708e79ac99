"""LASER on classic control with vectors and discrete actions."""

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="laser:gymnasium",
    tasks=("CartPole-v1", "Acrobot-v1"),
    conditions=(base.Condition("LASER"),),
    draw=curves.write,
)
