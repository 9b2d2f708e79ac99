"""Paths in the directories of runs and sweeps."""

import pathlib
from collections.abc import Sequence

# In a run directory.
LEARNER_CHECKPOINTS = "checkpoints/learner"
REPLAY_CHECKPOINT = "checkpoints/replay"
SEQUENCES_CHECKPOINT = "checkpoints/sequences.zip"
RUN_DIRECTORIES = (LEARNER_CHECKPOINTS, REPLAY_CHECKPOINT, "tensorboard", "videos")
SWEEP_DIRECTORIES = ("tensorboard",)

# Glob patterns of files that exist only after the first checkpoint, or after the start.
AFTER_CHECKPOINT = ("evaluation.json", f"{REPLAY_CHECKPOINT}/*")
AFTER_RUN_START = (*AFTER_CHECKPOINT, f"{LEARNER_CHECKPOINTS}/*", "episodes.csv")
AFTER_SWEEP_START = ("member_*/config.json", "population/*", "finished_members/*", "replay/*")


def find(workdir: pathlib.Path, patterns: Sequence[str]) -> list[str]:
    """Returns the first match of each glob pattern, relative to the directory."""
    found = (min(workdir.glob(pattern), default=None) for pattern in patterns)
    return [str(path.relative_to(workdir)) for path in found if path]


def has_checkpoint(workdir: pathlib.Path) -> bool:
    """Returns whether a run directory holds weights."""
    return bool(find(workdir, [f"{LEARNER_CHECKPOINTS}/checkpoint-*.index"]))
