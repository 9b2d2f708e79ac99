"""Where a run's evaluations lie.

`evaluations/` keeps every one, numbered as they were made; what was made last lies beside it as
`evaluation.json` too. They are not rows of one CSV, since each holds its protocol and its single
returns, whose number differs.
"""

import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from laser_tf.workdir import atomic

FOLDER = "evaluations"


def result_file(workdir: pathlib.Path, history_length: int = 0) -> pathlib.Path:
    """The newest evaluation's result; each length of history, 0 for all, has a file of its own."""
    suffix = f"_history_{history_length}" if history_length else ""
    return workdir / f"evaluation{suffix}.json"


def add(workdir: pathlib.Path, summary: Mapping[str, Any], history_length: int = 0) -> pathlib.Path:
    """Writes a new evaluation's result beside those before.

    Args:
      workdir: the run's folder.
      summary: what the file will hold.
      history_length: agent steps that the policy saw of an episode; 0: all.

    Returns:
      Its file of its own, e.g. `evaluations/evaluation_002.json`.

    Raises:
      OSError: if it cannot be written.
    """
    newest = result_file(workdir, history_length)
    folder = workdir / FOLDER
    folder.mkdir(exist_ok=True)
    if newest.exists() and not _numbers(folder, newest.stem):
        newest.rename(folder / f"{newest.stem}_000.json")  # made when none was kept
    path = _claim(folder, newest.stem)
    try:
        rewrite(path, summary, newest)
    except Exception:
        path.unlink(missing_ok=True)
        raise
    return path


def has_the_runs(
    workdir: pathlib.Path, env_frames: int, history_length: int = 0, episodes: int | None = None
) -> bool:
    """Whether the newest evaluation is the run's own: played neither greedily nor elsewhere.

    A result without protocol, of before there was one, is.

    Args:
      workdir: the run's folder.
      env_frames: that the weights have to have learned from, at least.
      history_length: agent steps that the policy saw of an episode; 0: all.
      episodes: of each task; None: any number.
    """
    try:
        summary = json.loads(result_file(workdir, history_length).read_text())
        is_of_all = summary["env_frames"] >= env_frames
        is_as_long = episodes is None or summary["episodes"] == episodes * len(summary["tasks"])
    except (OSError, ValueError, KeyError, TypeError):  # none, cut short, or not one of ours
        return False
    protocol = summary.get("protocol", {})
    is_own = protocol.get("action_selection") != "greedy" and "changed_environment" not in protocol
    return is_of_all and is_as_long and is_own


def film_file(workdir: pathlib.Path, evaluation: str, task: str) -> pathlib.Path:
    """A film of one of an evaluation's episodes.

    Args:
      workdir: the run's folder.
      evaluation: the name of its result's file, without the suffix.
      task: that is played, where there are several; "" otherwise.
    """
    suffix = f"_{task.replace('/', '_')}" if task else ""  # gymnasium's ids may have a namespace
    return workdir / "videos" / f"{evaluation}{suffix}.mp4"


def rewrite(path: pathlib.Path, summary: Mapping[str, Any], *others: pathlib.Path) -> None:
    """Writes a result to files atomically.

    Raises:
      OSError: If a file cannot be written.
    """
    for target in (path, *others):
        atomic.write(target, _render(summary))


def _claim(folder: pathlib.Path, stem: str) -> pathlib.Path:
    """Makes the empty file of the next number, which nobody else has then."""
    number = max(_numbers(folder, stem), default=0)
    while True:
        number += 1
        path = folder / f"{stem}_{number:03d}.json"
        try:
            path.touch(exist_ok=False)
        except FileExistsError:  # of an evaluation that goes on at the same time
            continue
        return path


def _numbers(folder: pathlib.Path, stem: str) -> list[int]:
    found = (re.fullmatch(rf"{stem}_(\d+)\.json", path.name) for path in folder.iterdir())
    return [int(match[1]) for match in found if match]


def _render(summary: Mapping[str, Any]) -> str:
    """JSON with a line for each key; lists of numbers stay on one."""
    text = json.dumps(summary, indent=2) + "\n"
    # Strings hold no line's end, so that nothing within them matches.
    return re.sub(r"\[\n\s*([-+\d.,eE\s]+?)\s*\]", _on_one_line, text)


def _on_one_line(numbers: re.Match) -> str:
    return f"[{' '.join(numbers[1].split())}]"
