"""The directory of a run or a sweep: creation, configuration file, checks on resumption."""

import errno
import json
import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from laser_tf import config_values, errors
from laser_tf.workdir import atomic, identity, layout, lock

CONFIG_FILE, SWEEP_FILE = "config.json", "sweep.json"  # configuration of a run, of a sweep
FINISHED, FINISHED_MEMBERS = "finished", "finished_members"  # marks in a sweep's directory
ORIGIN = "init_from"  # key of config.json: the run that provided the initial weights
COMMAND = "command"  # key of both files: the command that created the directory
_HAS_CHECKPOINT = "has_checkpoint"  # key of config.json: whether weights were ever saved
_KINDS = {CONFIG_FILE: "run", SWEEP_FILE: "sweep"}
_SCHEDULE = "learner.learning_rate_schedule"


class WorkdirError(errors.UserError):
    """A run directory cannot be used. The message states the reason and a remedy."""


def open_workdir(
    workdir: pathlib.Path,
    config: dict[str, Any],
    extra: dict[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    sweep_id: str = "",
    patience_seconds: float = 0.0,
    extend: bool = False,
) -> bool:
    """Creates and locks a run directory, or checks that it belongs to the same configuration.

    A larger `run.env_frames` continues the run if the learning rate is constant. If the learning
    rate follows a schedule, `extend` must be True.

    Args:
      workdir: Run directory.
      config: Resolved configuration, nested.
      extra: Further content of `config.json`, e.g. versions.
      defaults: Default values, nested, of keys that are missing in the `config.json` of the run.
      sweep_id: Id of the sweep that the run is part of; "" for a single run.
      patience_seconds: Timeout for another process that is leaving the directory.
      extend: Whether a learning rate schedule may end later than before.

    Returns:
      Whether the directory already held a run.

    Raises:
      WorkdirError: If the directory cannot be written, belongs to another configuration or sweep,
        or has lost its checkpoints.
      InUseError: If another process uses the directory.
    """
    path = workdir / CONFIG_FILE
    noted = {"sweep_id": sweep_id, **extra}
    resumed = _open(
        path, layout.RUN_DIRECTORIES, config, noted, defaults or {}, extend, patience_seconds
    )
    content = _read(path)
    if content.get("sweep_id", "") != sweep_id:
        raise WorkdirError(
            f"{workdir} belongs to a single run or to another sweep. Use another --workdir."
        )
    # A run that ended before its first checkpoint starts again.
    was_saved = content.get(_HAS_CHECKPOINT) or layout.find(workdir, layout.AFTER_CHECKPOINT)
    if resumed and was_saved and not layout.has_checkpoint(workdir):
        raise WorkdirError(
            f"{workdir / layout.LEARNER_CHECKPOINTS} must hold a checkpoint of this run, but all "
            "are missing. Restore them from a backup, or start again with another --workdir."
        )
    if resumed and ORIGIN in extra:  # The run starts again from the newest weights there.
        _write(path, content | {ORIGIN: extra[ORIGIN]})
    return resumed


def mark_checkpointed(workdir: pathlib.Path) -> None:
    """Records in `config.json` that weights were saved, so that their loss is detected.

    Raises:
      WorkdirError: If the file is missing or cannot be written.
    """
    content = _read(workdir / CONFIG_FILE)
    if not content.get(_HAS_CHECKPOINT):
        _write(workdir / CONFIG_FILE, content | {_HAS_CHECKPOINT: True})


def open_sweep(
    workdir: pathlib.Path,
    config: dict[str, Any],
    extra: dict[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    extend: bool = False,
) -> bool:
    """Creates and locks the directory of a sweep, or checks it. See `open_workdir`.

    The `id` in `extra` distinguishes the sweep from others with the same configuration.
    """
    path = workdir / SWEEP_FILE
    return _open(path, layout.SWEEP_DIRECTORIES, config, extra, defaults or {}, extend)


def _open(
    path: pathlib.Path,
    directories: Sequence[str],
    config: dict[str, Any],
    extra: dict[str, Any],
    defaults: Mapping[str, Any],
    extend: bool,
    patience_seconds: float = 0.0,
) -> bool:
    workdir = path.parent
    config, defaults = json.loads(json.dumps((config, defaults)))
    try:
        _check_unused(path)
        for name in directories:
            (workdir / name).mkdir(parents=True, exist_ok=True)
            _check_access(workdir / name)
        lock.acquire(workdir / lock.FILE, patience_seconds)
        if not path.exists():
            _write(path, {"config": config, **extra})
            return False
        before = identity.with_defaults(read_config(workdir, path.name), defaults)
        now = identity.with_defaults(config, defaults)
        if identity.is_longer(before, now):
            _extend(path, before, now, extend)
        else:
            _check_same_config(path, before, now)
            if before != now:  # Evaluations and a resumption without --config read the file.
                _write(path, _read(path) | {"config": now})
    except OSError as error:
        raise WorkdirError(
            f"cannot write in {error.filename or workdir}: {error.strerror}; "
            f"{errors.file_remedy(error)}, or choose another --workdir"
        ) from None
    return True


def _check_access(directory: pathlib.Path) -> None:
    """Raises PermissionError for a directory that cannot be listed and written."""
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(directory))


def _check_unused(path: pathlib.Path) -> None:
    """Raises WorkdirError if the configuration file is missing next to other files of a run."""
    workdir = path.parent
    try:
        str(workdir).encode()
    except UnicodeEncodeError:
        raise WorkdirError(
            f"--workdir must be valid UTF-8, got {str(workdir)!r}. Use another directory."
        ) from None
    if path.exists():
        return
    if any((workdir / name).exists() for name in (CONFIG_FILE, SWEEP_FILE)):
        raise WorkdirError(f"{workdir} already holds a run or sweep. Use another --workdir.")
    patterns = {CONFIG_FILE: layout.AFTER_RUN_START, SWEEP_FILE: layout.AFTER_SWEEP_START}
    for name, kind in _KINDS.items():
        if found := layout.find(workdir, patterns[name]):
            raise WorkdirError(
                f"{workdir} holds files of a {kind} ({', '.join(found)}) but no {name}. "
                "Restore that file from a backup, or use another --workdir."
            )


def read_config(workdir: pathlib.Path, name: str = CONFIG_FILE) -> dict[str, Any]:
    """Reads the configuration of a run, or with `SWEEP_FILE` of a sweep.

    Raises:
      WorkdirError: If the file is missing or damaged.
    """
    path = workdir / name
    content = _read(path)
    if "config" not in content:
        raise WorkdirError(f"cannot read {path}: the key 'config' is missing")
    return content["config"]


def check_no_sweep(workdir: pathlib.Path) -> None:
    """Raises WorkdirError for the directory of a sweep; the error names a run directory in it."""
    if (workdir / SWEEP_FILE).exists():
        run = min(workdir.glob(f"*/{CONFIG_FILE}"), default=workdir / "agent" / CONFIG_FILE).parent
        raise WorkdirError(f"{workdir} holds a sweep. Name the directory of one run in it: {run}")


def read_origin(workdir: pathlib.Path) -> str:
    """Returns the directory of the run that provided the initial weights; "" for fresh weights.

    Raises:
      WorkdirError: If the run's configuration is missing or damaged.
    """
    return _read(workdir / CONFIG_FILE).get(ORIGIN, {}).get("workdir", "")


def read_sweep_id(workdir: pathlib.Path) -> str:
    """Returns the id of the sweep in a directory.

    Raises:
      WorkdirError: If the sweep's configuration is missing or damaged.
    """
    return _read(workdir / SWEEP_FILE).get("id", "")


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        check_no_sweep(path.parent)
        raise WorkdirError(
            f"{path.parent} holds no {_KINDS[path.name]}: {path} is missing"
        ) from None
    except (OSError, ValueError) as error:
        raise WorkdirError(f"cannot read {path}: {errors.first_line(error)}") from None
    if not isinstance(content, dict) or not isinstance(content.get("config", {}), dict):
        raise WorkdirError(
            f"cannot read {path}: it holds no configuration. Restore it from a backup, or use "
            "another --workdir."
        )
    return content


def _write(path: pathlib.Path, content: dict[str, Any]) -> None:
    try:
        atomic.write(path, json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise WorkdirError(
            f"cannot write {path}: {error.strerror}; {errors.file_remedy(error)}, or choose "
            "another --workdir"
        ) from None


def _extend(path: pathlib.Path, before: dict[str, Any], now: dict[str, Any], extend: bool) -> None:
    """Records a larger number of env frames."""
    content = _read(path) | {"config": now}
    before, now = config_values.flatten(before), config_values.flatten(now)
    old, new = before[identity.LENGTH], now[identity.LENGTH]
    if now.get(_SCHEDULE) != "constant":
        if not extend:
            raise WorkdirError(
                f"{identity.LENGTH} must be {old} because the learning rate of {path.parent} falls "
                f"to zero at {old:,} env frames, got {new}. Use --extend to continue with a "
                f"schedule of {new:,} env frames, whose learning rate is higher at this point, or "
                "use another --workdir."
            )
        logging.warning(
            "The learning rate falls to zero at %s env frames instead of %s. It increases at the "
            "current update.", f"{new:,}", f"{old:,}",
        )  # fmt: skip
        # The curve differs from the curve of a run that had this length from the start.
        content.setdefault("extended_from_env_frames", []).append(old)
    # Before the new configuration: if this process is killed in between, agents of a sweep only
    # report again that they are finished.
    for name in (FINISHED, FINISHED_MEMBERS):
        mark = path.parent / name
        if mark.exists():
            atomic.replace(mark, mark.with_name(f"{name}_{old}"))
    _write(path, content)


def _check_same_config(path: pathlib.Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    differences = identity.describe_differences(before, now)
    if not differences:
        return
    command = _read(path).get(COMMAND)
    resumes = f"resume with: {command}" if command else "resume with the same values"
    raise WorkdirError(
        f"{path.parent} belongs to a {_KINDS[path.name]} of another config: {differences}. Use "
        f"another --workdir, or {resumes}"
    )
