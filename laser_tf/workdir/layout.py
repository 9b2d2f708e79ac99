"""What runs and sweeps leave in their folders, by which a loss is told from a beginning."""

import pathlib
from collections.abc import Sequence

LEARNER = "checkpoints/learner"  # in a run's folder
# Patterns of what is there once weights were saved, and once a run or a sweep has begun at all.
SAVED = ("evaluation.json", "checkpoints/replay/*")
RUN = (*SAVED, f"{LEARNER}/*", "episodes.csv")
SWEEP = ("agent_*/config.json", "population/*", "finished_agents/*", "replay/*")


def find(workdir: pathlib.Path, patterns: Sequence[str]) -> list[str]:
    """What is there of some patterns, one path of each, relative to the folder."""
    found = (min(workdir.glob(pattern), default=None) for pattern in patterns)
    return [str(path.relative_to(workdir)) for path in found if path]


def has_checkpoint(workdir: pathlib.Path) -> bool:
    """Whether a run's folder holds weights."""
    return bool(find(workdir, [f"{LEARNER}/checkpoint-*.index"]))
