"""How sharing replay went: an agent's diagnostics, and a condition's over agents and replicas."""

import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from laser_tf.analysis import sweep_results
from laser_tf.monitoring import tensorboard
from laser_tf.scores import aggregates

UNITS = {  # of what is drawn, in the order of the pictures
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
_MEANS = {  # column -> what it is the mean of
    "advantage_own": "vtrace/advantage_own",
    "advantage_foreign": "vtrace/advantage_foreign",
    "accepted_foreign_fraction": "trust_region/accepted_foreign_fraction",
    "kl_foreign": "policy/kl_foreign",
}
MEASURES = ("policy_entropy", *_MEANS)  # columns

Scalars = Mapping[str, tuple[np.ndarray, np.ndarray]]  # name -> env frames [n], float64 [n]; n > 0


def read(run: pathlib.Path) -> Scalars:
    """What a run's folder holds of the diagnostics: finite values, and the names with any.

    Raises:
      OSError: if the events cannot be read.
    """
    found = tensorboard.read_several(run / "tensorboard", (_ENTROPY, *UNITS))
    finite = {
        name: (frames[np.isfinite(values)], values[np.isfinite(values)])
        for name, (frames, values) in found.items()
    }
    return {name: scalars for name, scalars in finite.items() if len(scalars[0])}


def measures(runs: Sequence[Scalars]) -> list[float]:
    """An agent in numbers: its last entropy tells whether it has collapsed, the rest are means.

    Args:
      runs: of one agent, from `read`: several where each plays one task.

    Returns:
      In the order of `MEASURES`, the mean over runs; NaN where none has a value.
    """

    def over_runs(values: list[float]) -> float:
        return float(np.mean(values)) if values else np.nan

    return [
        over_runs([run[_ENTROPY][1][-1] for run in runs if _ENTROPY in run]),
        *(
            over_runs([run[name][1].mean() for run in runs if name in run])
            for name in _MEANS.values()
        ),
    ]


def mean_curves(
    protocol: sweep_results.Protocol,
    condition: sweep_results.Condition,
    of_runs: Mapping[pathlib.Path, Scalars],
) -> dict[str, np.ndarray]:
    """Each diagnostic's mean over all runs of a condition.

    Args:
      protocol: of its suite.
      condition: whose agents' runs are taken.
      of_runs: what `read` says of each run's folder.

    Returns:
      Name -> float64 [K], at `protocol.env_frames(K)`; NaN where no run has a value. Without the
      names that no run has.
    """
    width = protocol.bucket * protocol.group
    curves: dict[str, list[np.ndarray]] = {}
    for run in condition.runs:
        for name, (frames, values) in of_runs[run.folder].items():
            curves.setdefault(name, []).append(_bucketed(frames, values, width))
    return {name: aggregates.over_replicas(curves[name]).mean for name in UNITS if name in curves}


def _bucketed(frames: np.ndarray, values: np.ndarray, width: int) -> np.ndarray:
    """Bucket means [K]; a bucket between two rows takes a value between theirs."""
    # A row tells of the frames before it: that of the last frame belongs to the last bucket.
    means = aggregates.bucket_means(np.maximum(frames - 1, 0), values, width)
    filled = np.flatnonzero(np.isfinite(means))
    return np.interp(np.arange(len(means)), filled, means[filled], left=np.nan)
