"""Run directories with known episodes and metrics."""

import csv
import pathlib
from collections.abc import Mapping, Sequence

from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.workdir import run_directory


def write_run(
    folder: pathlib.Path,
    episodes: Sequence[tuple[int, int, float]],
    *,
    tasks: Sequence[str] = ("one", "two"),
    seconds: Mapping[int, float] | None = None,
    suite: str = "catch",
) -> pathlib.Path:
    """Writes a run.

    Args:
      folder: Its directory.
      episodes: Env frames, index of the task, return.
      tasks: Names of the tasks.
      seconds: Env frames -> seconds of training.
      suite: Suite of its environment.
    """
    run_directory.open_workdir(
        folder, {"run": {"env_frames": 200}, "environment": {"suite": suite}}, {}
    )
    log = episode_log.EpisodeLog(folder, tasks)
    log.resume(None)
    for frames, task, value in episodes:
        log.add(episode_log.Row(frames, tasks[task], value, 9))
    log.flush()
    writer = tensorboard.MetricsWriter(folder / "tensorboard")
    for frames, wall_seconds in (seconds or {}).items():
        writer.write(frames, {"run/wall_seconds": wall_seconds})
    return folder


def read_csv(path: pathlib.Path) -> list[dict[str, str]]:
    """Returns the rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
