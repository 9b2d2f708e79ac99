"""LASER next to Dopamine's published agents, by their protocol, at equal env frames."""

from experiments import base
from laser_tf.plotting import atari

EXPERIMENT = base.Experiment(
    config="laser:atari_dopamine",
    tasks=("pong", "breakout", "space_invaders", "seaquest", "qbert", "beam_rider"),
    conditions=(base.Condition(atari.LABEL),),
    overrides={"run.env_frames": 10_000_000},
    draw=atari.write,
)
