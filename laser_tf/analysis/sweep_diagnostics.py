"""How sharing replay went: a condition's diagnostics over its agents and replicas."""

import pathlib

import numpy as np

from laser_tf.analysis import sweep_results
from laser_tf.monitoring import tensorboard
from laser_tf.scores import aggregates

UNITS = {  # of what is read, in the order of the pictures
    "replay/foreign_fraction": "",
    "trust_region/accepted_own_fraction": "",
    "trust_region/accepted_foreign_fraction": "",
    "policy/kl_own": "nats",
    "policy/kl_foreign": "nats",
    "vtrace/advantage_own": "reward",
    "vtrace/advantage_foreign": "reward",
    "replay/age_updates": "learner updates",
}


def mean_curves(
    protocol: sweep_results.Protocol, condition: sweep_results.Condition
) -> dict[str, np.ndarray]:
    """Each diagnostic's mean over all runs of a condition.

    Returns:
      Name -> float64 [K], at `protocol.env_frames(K)`; NaN where no run has a value. Without the
      names that no run has.
    """
    runs = [run for replica in condition.replicas for agent in replica.agents for run in agent.runs]
    curves: dict[str, list[np.ndarray]] = {}
    for run in runs:
        for name, curve in _read(run.folder / "tensorboard", protocol).items():
            curves.setdefault(name, []).append(curve)
    return {name: aggregates.over_replicas(curves[name]).mean for name in UNITS if name in curves}


def _read(folder: pathlib.Path, protocol: sweep_results.Protocol) -> dict[str, np.ndarray]:
    if not folder.is_dir():
        return {}
    return {
        name: _bucketed(frames, values, protocol.bucket * protocol.group)
        for name, (frames, values) in tensorboard.read_several(folder, tuple(UNITS)).items()
        if len(frames)
    }


def _bucketed(frames: np.ndarray, values: np.ndarray, width: int) -> np.ndarray:
    """Bucket means [K]; a bucket between two rows takes a value between theirs."""
    # A row tells of the frames before it: that of the last frame belongs to the last bucket.
    means = aggregates.bucket_means(np.maximum(frames - 1, 0), values, width)
    filled = np.flatnonzero(np.isfinite(means))
    return np.interp(np.arange(len(means)), filled, means[filled], left=np.nan)
