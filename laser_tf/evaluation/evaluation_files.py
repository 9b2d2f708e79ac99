"""Files of a run's evaluations.

`evaluations/` keeps every result under a number; `evaluation.json` is the newest result. Each
result holds its protocol and its single returns, whose number differs.
"""

import contextlib
import itertools
import json
import pathlib
import re
import tempfile
from collections.abc import Mapping
from typing import Any

from laser_tf.workdir import atomic, run_directory


def result_file(workdir: pathlib.Path, history_length: int = 0) -> pathlib.Path:
    """Returns the path of the newest result with a history length in agent steps (0: unlimited)."""
    suffix = f"_history_{history_length}" if history_length else ""
    return workdir / f"evaluation{suffix}.json"


def check_writable(result: pathlib.Path) -> None:
    """Raises WorkdirError if a result cannot be written, before hours of evaluation."""
    try:
        if result.exists():
            result.open("ab").close()
        tempfile.TemporaryFile(dir=result.parent).close()
    except OSError as error:
        raise run_directory.WorkdirError(
            f"cannot write {result}: {error.strerror}. Make the run directory writable, or "
            "evaluate a copy of it."
        ) from None


def add(workdir: pathlib.Path, summary: Mapping[str, Any], history_length: int = 0) -> pathlib.Path:
    """Writes a new result; returns its numbered file, e.g. `evaluations/evaluation_002.json`."""
    newest = result_file(workdir, history_length)
    folder = workdir / "evaluations"
    folder.mkdir(exist_ok=True)
    for number in itertools.count(1):
        path = folder / f"{newest.stem}_{number:03d}.json"
        with contextlib.suppress(FileExistsError):
            path.touch(exist_ok=False)  # Reserves the number against concurrent evaluations.
            break
    try:
        write(summary, path, newest)
    except BaseException:
        path.unlink(missing_ok=True)  # An empty file must not look like a result.
        raise
    return path


def write(summary: Mapping[str, Any], *paths: pathlib.Path) -> None:
    """Writes a result atomically to each path as JSON, with lists of numbers on one line."""
    text = json.dumps(summary, indent=2) + "\n"
    # Strings of JSON contain no line break, so the pattern matches no part of a string.
    text = re.sub(
        r"\[\n\s*([-+\d.,eE\s]+?)\s*\]", lambda match: f"[{' '.join(match[1].split())}]", text
    )
    for path in paths:
        atomic.write(path, text)


def standard_evaluation(
    workdir: pathlib.Path, env_frames: int, history_length: int = 0, episodes: int | None = None
) -> dict[str, Any] | None:
    """Returns the newest standard result: of the newest weights in the run's own environments.

    Its actions are sampled, its weights have at least `env_frames`, and it has `episodes` of each
    task (None: any number). Later results may have another protocol.
    """
    newest = result_file(workdir, history_length)
    paths = newest, *reversed(_numbered(newest))
    return next(filter(None, (_read_standard(path, env_frames, episodes) for path in paths)), None)


def first_standard_evaluation(workdir: pathlib.Path, env_frames: int) -> dict[str, Any] | None:
    """Returns the oldest result that was the `standard_evaluation`, if any."""
    paths = _numbered(result_file(workdir))
    return next(filter(None, (_read_standard(path, env_frames) for path in paths)), None)


def _numbered(newest: pathlib.Path) -> list[pathlib.Path]:
    """Returns the numbered files of a `result_file`, oldest first."""
    return sorted(newest.with_name("evaluations").glob(f"{newest.stem}_[0-9]*.json"))


def _read_standard(
    path: pathlib.Path, env_frames: int, episodes: int | None = None
) -> dict[str, Any] | None:
    """Returns the result in a file if it is standard, see `standard_evaluation`."""
    try:
        summary = json.loads(path.read_text())
        protocol = summary["protocol"]
        is_standard = (
            summary["env_frames"] >= env_frames
            and episodes in (None, protocol["episodes_per_task"])
            and protocol["action_selection"] != "greedy"
            and "changed_environment" not in protocol
            and "weights" not in protocol
        )
    except (OSError, ValueError, KeyError, TypeError):  # Missing, damaged or another file.
        return None
    return summary if is_standard else None
