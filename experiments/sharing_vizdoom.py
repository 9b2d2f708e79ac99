"""Sharing next to members that get stuck, with a memory, on ViZDoom's health_gathering.

See `experiments/sharing.py`. The companions have hardly an entropy cost, either. A seed has failed
below random play.
"""

import functools

from experiments import base
from experiments.sharing import COMPARED
from laser_tf.plotting import sharing

EXPERIMENT = base.Experiment(
    config="sweeps:vizdoom",
    command="sweep",
    conditions=tuple(base.Condition(label, overrides) for label, overrides in COMPARED.items()),
    draw=functools.partial(sharing.write, failed_below=384.0),  # return of 200 random episodes
)
