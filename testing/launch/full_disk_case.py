"""A disk without space for replay, which a limit on the size of files simulates."""

import pathlib

from testing import commands

LIMIT = 60_000  # bytes; weights have 46,000, 500 unrolls of catch over 65,000
FLAGS = (
    "--config.run.metrics_seconds=60",
    "--config.run.evaluation_episodes=2",
    "--config.run.checkpoint_minutes=0.02",
    "--config.run.replay_checkpoint_minutes=0.02",
)


class FullDiskCase(commands.CommandTest):
    """Base of tests of runs on a full disk."""

    def assert_no_parts(self, folder: pathlib.Path) -> None:
        self.assertEmpty(list(folder.rglob("*_saving")) + list(folder.rglob("unfinished")))
