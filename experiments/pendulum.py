"""LASER with continuous actions on Pendulum-v1."""

from experiments import base
from laser_tf.plotting import curves

EXPERIMENT = base.Experiment(
    config="laser:control",
    conditions=(base.Condition("LASER"),),
    draw=curves.write,
)
