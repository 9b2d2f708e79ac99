"""Diagnostics of shared replay: what TensorBoard holds of each member of a sweep."""

import pathlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from laser_tf.monitoring import tensorboard

UNITS = {  # of the curves, in the order of the panels
    "replay/foreign_fraction": "",
    "trust_region/accepted_own_fraction": "",
    "trust_region/accepted_foreign_fraction": "",
    "policy/kl_own": "nats",
    "policy/kl_foreign": "nats",
    "vtrace/advantage_own": "reward",
    "vtrace/advantage_foreign": "reward",
    "replay/age_updates": "learner updates",
}
_ENTROPY = "policy/entropy"
_MEANS = {  # column of `measures` -> metric that is averaged
    "advantage_own": "vtrace/advantage_own",
    "advantage_foreign": "vtrace/advantage_foreign",
    "accepted_foreign_fraction": "trust_region/accepted_foreign_fraction",
    "kl_foreign": "policy/kl_foreign",
}


def read(run: pathlib.Path) -> pd.DataFrame:
    """Returns the finite diagnostics of a run: metric, env_frames, value.

    Raises:
      OSError: If the events cannot be read.
    """
    found = tensorboard.read_several(run / "tensorboard", (_ENTROPY, *UNITS))
    parts = [
        pd.DataFrame({"metric": name, "env_frames": frames, "value": values})
        for name, (frames, values) in found.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[np.isfinite(table["value"])]


def measures(runs: Sequence[pathlib.Path]) -> dict[str, float]:
    """Summarises a member: its last entropy, which shows a collapse, and means of `_MEANS`.

    Args:
      runs: Runs of one member, one for each task.

    Returns:
      Column -> mean over runs; NaN if no run has a value.
    """
    tables = [read(run).groupby("metric")["value"] for run in runs]
    last = pd.DataFrame([table.last() for table in tables], columns=[_ENTROPY, *UNITS]).mean()
    means = pd.DataFrame([table.mean() for table in tables], columns=[_ENTROPY, *UNITS]).mean()
    return {"policy_entropy": last[_ENTROPY]} | {
        column: means[metric] for column, metric in _MEANS.items()
    }


def curves(runs: Sequence[pathlib.Path], bucket: int) -> pd.DataFrame:
    """Returns the mean over runs in buckets of env frames: metric, env_frames, value.

    Args:
      runs: Run directories.
      bucket: Env frames in a point.
    """
    table = pd.concat([read(run) for run in runs], ignore_index=True)
    table = table[table["metric"].isin(UNITS)]
    # A row describes the frames before it: the last one belongs to the last bucket.
    buckets = (table["env_frames"] - 1).clip(lower=0) // bucket
    table = table.assign(env_frames=(buckets + 0.5) * bucket)
    return table.groupby(["metric", "env_frames"])["value"].mean().reset_index()
