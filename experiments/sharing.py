"""Conditions in which naive sharing should hurt: members next to others that collapse.

Fixed before the first run. Members: two normal ones and eight with a learning rate far too high on
catch (`sweeps:catch_companions`); `experiments/sharing_vizdoom.py` has two and four on ViZDoom.
Conditions: a replay each, one replay without the trust region (naive sharing), and one replay with
the trust region at b = 0.3, 0.1 and 0.03 nats. On catch, each with the environment's own rewards
and with 1 more a step, which makes all returns positive. The members with a replay each have no
trust region, either: they differ from naive sharing in the sharing alone. 87.5% of a batch is
replayed.

Metric: a member's mean return over its last 100 training episodes, without the offset, so that
random play is at -0.6 everywhere; a seed counts by the mean of its two normal members. Conditions
are compared by their mean over seeds with its bootstrap interval, and by the seeds that failed:
below 0 on catch, whose members miss more balls than they catch. All members are reported, and
whether the companions did collapse: to an entropy near 0 and the return of random play.
"""

import functools

from experiments import base
from laser_tf.plotting import sharing

_NAIVE: base.Overrides = {"sweep.shared_replay": True, "agent.relevance": "none"}
COMPARED: dict[str, base.Overrides] = {
    "a replay each": _NAIVE | {"sweep.shared_replay": False},
    "naive sharing": _NAIVE,
    **{
        f"sharing, b = {b}": {
            "sweep.shared_replay": True,
            "agent.relevance": "implied",
            "agent.kl_threshold": b,  # nats
        }
        for b in (0.3, 0.1, 0.03)
    },
}

EXPERIMENT = base.Experiment(
    config="sweeps:catch_companions",
    command="sweep",
    conditions=tuple(
        base.Condition(label + ending, overrides | {"environment.reward_offset": offset})
        for ending, offset in (("", 0.0), (", +1 a step", 1.0))
        for label, overrides in COMPARED.items()
    ),
    draw=functools.partial(sharing.write, failed_below=0.0),
)
