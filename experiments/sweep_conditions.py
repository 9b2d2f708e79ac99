"""Conditions and the drawing that LASER's figures of sweeps share."""

import pathlib

from experiments import base
from laser_tf.plotting import curves, sweep_report

OWN_REPLAY: base.Overrides = {"sweep.shared_replay": False}
NO_TRUST_REGION: base.Overrides = {"agent.relevance": "none"}
ONLINE_UNROLLS = 2  # in a batch of `sweeps:minatar`; equal in all conditions

NO_REPLAY = base.Condition(
    "no replay",
    OWN_REPLAY | NO_TRUST_REGION | {"replay.scheme": "online", "replay.batch_size": ONLINE_UNROLLS},
)
SHARED_NO_TRUST_REGION = base.Condition("shared replay, no trust region", NO_TRUST_REGION)
SHARED = base.Condition("shared replay, trust region")
SEPARATE = base.Condition("a replay each, trust region", OWN_REPLAY)


def replayed(fraction: float) -> base.Overrides:
    """Returns the overrides for batches with a fraction of replayed unrolls."""
    return {
        "replay.batch_size": round(ONLINE_UNROLLS / (1 - fraction)),
        "replay.replay_fraction": fraction,
    }


def draw(runs: curves.Runs, output: pathlib.Path) -> None:
    """Writes the report of all sweeps of an experiment."""
    del runs  # found in the directory above the report
    sweep_report.write(output.parent, output)
