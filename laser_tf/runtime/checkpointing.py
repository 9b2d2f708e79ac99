"""A run's folder: its configuration, and checkpoints of the learner that survive damage."""

import json
import logging
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from laser_tf import errors
from laser_tf.runtime import folder_lock, run_config

LEARNER_CHECKPOINTS_KEPT = 3
RUN, SWEEP = "config.json", "sweep.json"  # where a folder's configuration lies
_KINDS = {RUN: "run", SWEEP: "sweep"}
_LENGTH, _SCHEDULE = "run.env_frames", "learner.learning_rate_schedule"


class WorkdirError(errors.UserError):
    """A run's folder cannot be used; the message says why and what to do."""


class LearnerCheckpoints:
    """Numbered checkpoints of one `tf.Module`, newest last."""

    def __init__(self, folder: pathlib.Path, module: tf.Module):
        self._folder = folder
        self._checkpoint = tf.train.Checkpoint(learner=module)

    def save(self, number: int) -> None:
        """Writes a checkpoint, then deletes those beyond the newest few.

        Raises:
          WorkdirError: if it cannot be written; the older ones stay.
        """
        try:
            self._checkpoint.write(str(self._folder / f"checkpoint-{number}"))
        except (tf.errors.OpError, OSError) as error:
            raise WorkdirError(
                f"cannot write a checkpoint in {self._folder}: {first_line(error)}; the "
                "checkpoints before it are untouched. Free space, then run again"
            ) from None
        for old in self.numbers()[:-LEARNER_CHECKPOINTS_KEPT]:
            for path in self._folder.glob(f"checkpoint-{old}.*"):
                path.unlink()

    def restore(self) -> int | None:
        """Restores the newest readable checkpoint.

        Returns:
          Its number, or None where there is no checkpoint at all.

        Raises:
          WorkdirError: if there are checkpoints and none can be read.
        """
        numbers = self.numbers()
        for number in reversed(numbers):
            try:
                status = self._checkpoint.read(str(self._folder / f"checkpoint-{number}"))
                status.assert_existing_objects_matched()
                return number
            except Exception as error:  # damage shows as almost any error of TensorFlow's
                logging.warning(
                    "checkpoint-%d in %s is damaged (%s); falling back to the one before it",
                    number, self._folder, first_line(error),
                )  # fmt: skip
        if numbers:
            raise WorkdirError(
                f"none of the checkpoints in {self._folder} can be read: restore them from a "
                "backup, or start again with another --workdir"
            )
        return None

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints that are there, ascending."""
        # Listed from the files themselves: a state file could be damaged too.
        matches = [re.fullmatch(r"checkpoint-(\d+)\.index", p.name) for p in self._folder.glob("*")]
        return sorted(int(match[1]) for match in matches if match)


def open_workdir(
    workdir: pathlib.Path,
    config: dict[str, Any],
    extra: dict[str, Any],
    *,
    sweep_id: str = "",
    patience_seconds: float = 0.0,
) -> bool:
    """Makes a run's folder, or checks that it belongs to the same configuration.

    It belongs to this process from then on. More env frames are the same configuration where the
    learning rate is constant, and noted.

    Args:
      workdir: the folder.
      config: the resolved configuration, nested.
      extra: what else to note in `config.json`, e.g. versions.
      sweep_id: of the sweep whose agent runs there; "" for a run of its own.
      patience_seconds: for another process that is leaving the folder.

    Returns:
      Whether the folder held a run already.

    Raises:
      WorkdirError: if the folder cannot be written or belongs to another configuration or sweep.
      InUseError: if another process works there.
    """
    folders = ("checkpoints/learner", "checkpoints/replay", "tensorboard", "videos")
    noted = {"sweep_id": sweep_id, **extra}
    resumed = _open(workdir / RUN, folders, config, noted, patience_seconds)
    if _read(workdir / RUN).get("sweep_id", "") != sweep_id:
        raise WorkdirError(
            f"{workdir} belongs to a run of its own or to another sweep's agent: use another "
            "--workdir"
        )
    return resumed


def open_sweep(workdir: pathlib.Path, config: dict[str, Any], extra: dict[str, Any]) -> bool:
    """Makes a sweep's folder, or checks it; as `open_workdir`, for `sweep.json`.

    Its `id`, of `extra`, tells the sweep from others of the same configuration.
    """
    return _open(workdir / SWEEP, ("tensorboard",), config, extra)


def _open(
    path: pathlib.Path,
    folders: Sequence[str],
    config: dict[str, Any],
    extra: dict[str, Any],
    patience_seconds: float = 0.0,
) -> bool:
    workdir = path.parent
    config = json.loads(json.dumps(config))
    try:
        if not path.exists() and any((workdir / name).exists() for name in (RUN, SWEEP)):
            raise WorkdirError(f"{workdir} holds a run or sweep already: use another --workdir")
        for name in folders:
            (workdir / name).mkdir(parents=True, exist_ok=True)
        folder_lock.hold(workdir / folder_lock.FILE, patience_seconds)
        if path.exists():
            if _is_longer(read_config(workdir, path.name), config):
                _write(path, _read(path) | {"config": config})
            _check_same_config(path, config)
            return True
        if any((workdir / "checkpoints/learner").glob("*")):
            raise WorkdirError(
                f"{workdir} holds checkpoints but no {path.name}: use another folder"
            )
        _write(path, {"config": config, **extra})
    except OSError as error:
        raise WorkdirError(
            f"cannot write in {workdir}: {error.strerror}; choose another --workdir or free space"
        ) from None
    return False


def read_config(workdir: pathlib.Path, name: str = RUN) -> dict[str, Any]:
    """The configuration of the run, or with `SWEEP` of the sweep, in a folder.

    Raises:
      WorkdirError: if there is none, or it cannot be read.
    """
    path = workdir / name
    content = _read(path)
    if "config" not in content:
        raise WorkdirError(f"cannot read {path}: it says nothing of a config")
    return content["config"]


def read_sweep_id(workdir: pathlib.Path) -> str:
    """Which sweep it is that lies in a folder; "" for those that were made without an id.

    Raises:
      WorkdirError: if there is none, or it cannot be read.
    """
    return _read(workdir / SWEEP).get("id", "")


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        kind = _KINDS[path.name]
        raise WorkdirError(f"{path.parent} holds no {kind}: there is no {path}") from None
    except (OSError, ValueError) as error:
        raise WorkdirError(f"cannot read {path}: {first_line(error)}") from None
    if not isinstance(content, dict) or not isinstance(content.get("config", {}), dict):
        raise WorkdirError(
            f"cannot read {path}: it holds no configuration; restore it from a backup, or use "
            "another --workdir"
        )
    return content


def _write(path: pathlib.Path, content: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n")
    temporary.replace(path)


def _is_longer(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether a run is the one before with more frames, and nothing hung on their number."""
    before, now = run_config.flatten(before), run_config.flatten(now)
    more = now.pop(_LENGTH, 0) > before.pop(_LENGTH, 0)
    return more and before == now and now.get(_SCHEDULE) == "constant"


def _check_same_config(path: pathlib.Path, config: dict[str, Any]) -> None:
    before, now = (
        run_config.flatten(read_config(path.parent, path.name)),
        run_config.flatten(config),
    )
    differing = [
        f"{key} (there {before.get(key)!r}, now {now.get(key)!r})"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    ]
    if differing:
        raise WorkdirError(
            f"{path.parent} belongs to a {_KINDS[path.name]} of another config: "
            f"{', '.join(differing)}. Use another --workdir, or the same values to resume"
        )


def first_line(error: BaseException) -> str:
    """What an error of TensorFlow's or another says, as a line of text."""
    text = re.sub(r"\{\{.*?\}\}|\[Op:.*?\]", "", str(error)).strip()  # TensorFlow's graph names
    return text.splitlines()[0][:400].strip() if text else type(error).__name__
