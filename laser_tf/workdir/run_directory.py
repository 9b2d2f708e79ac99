"""A run's or a sweep's folder: whose it is, its configuration, and what must not be lost."""

import errno
import json
import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from laser_tf import config_values, errors
from laser_tf.workdir import atomic, identity, layout, lock

RUN, SWEEP = "config.json", "sweep.json"  # where a folder's configuration lies
FINISHED, FINISHED_AGENTS = "finished", "finished_agents"  # in a sweep's: who spent its budget
ORIGIN = "init_from"  # in config.json: the run whose weights it began from
COMMAND = "command"  # in both: the command that created the directory
_MOST_SHOWN = 5  # keys that differ, in a message
_KINDS = {RUN: "run", SWEEP: "sweep"}
_HAS_CHECKPOINT = "has_checkpoint"  # in config.json: there was one once
_SCHEDULE = "learner.learning_rate_schedule"


class WorkdirError(errors.UserError):
    """A run's folder cannot be used; the message says why and what to do."""


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
    """Makes a run's folder, or checks that it belongs to the same configuration.

    It belongs to this process from then on. More env frames are the same configuration where the
    learning rate is constant, and noted; where it follows a schedule, `extend` has to say so.

    Args:
      workdir: the folder.
      config: the resolved configuration, nested.
      extra: what else to note in `config.json`, e.g. versions.
      defaults: of a configuration's keys, nested: what a run had whose `config.json` is older than
        a key. None: nothing is known of other keys than those of `config`.
      sweep_id: of the sweep whose agent runs there; "" for a run of its own.
      patience_seconds: for another process that is leaving the folder.
      extend: whether a schedule that ends with the run may end later.

    Returns:
      Whether the folder held a run already.

    Raises:
      WorkdirError: if the folder cannot be written, belongs to another configuration or sweep, or
        has lost what a run had left there.
      InUseError: if another process works there.
    """
    folders = ("checkpoints/learner", "checkpoints/replay", "tensorboard", "videos")
    noted = {"sweep_id": sweep_id, **extra}
    resumed = _open(workdir / RUN, folders, config, noted, defaults or {}, extend, patience_seconds)
    if _read(workdir / RUN).get("sweep_id", "") != sweep_id:
        raise WorkdirError(
            f"{workdir} belongs to a run of its own or to another sweep's agent: use another "
            "--workdir"
        )
    # A run may also have ended before its first checkpoint; it begins again then.
    was_saved = _read(workdir / RUN).get(_HAS_CHECKPOINT) or layout.find(workdir, layout.SAVED)
    if resumed and was_saved and not layout.has_checkpoint(workdir):
        raise WorkdirError(
            f"{workdir} was trained and saved, but there is no checkpoint in "
            f"{workdir / layout.LEARNER_CHECKPOINTS} any more: restore them from a backup, or "
            "start again with another --workdir"
        )
    if resumed and ORIGIN in extra:  # it begins again, from what is newest there by now
        _write(workdir / RUN, _read(workdir / RUN) | {ORIGIN: extra[ORIGIN]})
    return resumed


def note_checkpoint(workdir: pathlib.Path) -> None:
    """Notes in a run's `config.json` that there is a checkpoint, so that its loss shows.

    Raises:
      WorkdirError: if that cannot be written, or there is no such file.
    """
    noted = _read(workdir / RUN)
    if not noted.get(_HAS_CHECKPOINT):
        _write(workdir / RUN, noted | {_HAS_CHECKPOINT: True})


def open_sweep(
    workdir: pathlib.Path,
    config: dict[str, Any],
    extra: dict[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    extend: bool = False,
) -> bool:
    """Makes a sweep's folder, or checks it; as `open_workdir`, for `sweep.json`.

    Its `id`, of `extra`, tells the sweep from others of the same configuration.
    """
    return _open(workdir / SWEEP, ("tensorboard",), config, extra, defaults or {}, extend)


def _open(
    path: pathlib.Path,
    folders: Sequence[str],
    config: dict[str, Any],
    extra: dict[str, Any],
    defaults: Mapping[str, Any],
    extend: bool,
    patience_seconds: float = 0.0,
) -> bool:
    workdir = path.parent
    config, defaults = json.loads(json.dumps((config, defaults)))
    try:
        _check_is_free(path)
        for name in folders:
            (workdir / name).mkdir(parents=True, exist_ok=True)
            _check_access(workdir / name)
        lock.acquire(workdir / lock.FILE, patience_seconds)
        if path.exists():
            before = identity.with_defaults(read_config(workdir, path.name), defaults)
            now = identity.with_defaults(config, defaults)
            if identity.is_longer(before, now):
                _lengthen(path, before, now, extend)
            else:
                _check_same_config(path, before, now)
                if before != now:  # Evaluations read the file, and a resume without --config.
                    _write(path, _read(path) | {"config": now})
            return True
        _write(path, {"config": config, **extra})
    except OSError as error:
        raise WorkdirError(
            f"cannot write in {error.filename or workdir}: {error.strerror}; "
            f"{errors.file_remedy(error)}, or choose another --workdir"
        ) from None
    return False


def _check_access(folder: pathlib.Path) -> None:
    """Raises PermissionError for a directory that cannot be listed and written."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _check_is_free(path: pathlib.Path) -> None:
    """Raises WorkdirError where a folder's configuration is missing and it holds other things."""
    workdir = path.parent
    try:
        str(workdir).encode()
    except UnicodeEncodeError:
        raise WorkdirError(
            f"--workdir is {str(workdir)!r}, whose name is no UTF-8: use another one"
        ) from None
    if path.exists():
        return
    if any((workdir / name).exists() for name in (RUN, SWEEP)):
        raise WorkdirError(f"{workdir} holds a run or sweep already: use another --workdir")
    for name, traces in ((RUN, layout.RUN), (SWEEP, layout.SWEEP)):
        found = layout.find(workdir, traces)
        if found:
            raise WorkdirError(
                f"{workdir} holds what a {_KINDS[name]} left ({', '.join(found)}) but no {name}: "
                "restore that file from a backup, or use another --workdir"
            )


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


def check_no_sweep(workdir: pathlib.Path) -> None:
    """Refuses the folder of a sweep where that of a run is asked for.

    Raises:
      WorkdirError: for one; the message names the folder of one of its agents.
    """
    if (workdir / SWEEP).exists():
        agent = min(workdir.glob(f"*/{RUN}"), default=workdir / "agent" / RUN).parent
        raise WorkdirError(f"{workdir} holds a sweep: name one of its agents' folders, as {agent}")


def read_origin(workdir: pathlib.Path) -> str:
    """The folder of the run whose weights a run began from; "" for fresh ones.

    Raises:
      WorkdirError: if there is no run, or it cannot be read.
    """
    return _read(workdir / RUN).get(ORIGIN, {}).get("workdir", "")


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
        check_no_sweep(path.parent)
        kind = _KINDS[path.name]
        raise WorkdirError(f"{path.parent} holds no {kind}: there is no {path}") from None
    except (OSError, ValueError) as error:
        raise WorkdirError(f"cannot read {path}: {errors.first_line(error)}") from None
    if not isinstance(content, dict) or not isinstance(content.get("config", {}), dict):
        raise WorkdirError(
            f"cannot read {path}: it holds no configuration; restore it from a backup, or use "
            "another --workdir"
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


def _lengthen(
    path: pathlib.Path, before: dict[str, Any], now: dict[str, Any], extend: bool
) -> None:
    """Notes more env frames; those to which a learning rate is tied only where that is wanted."""
    noted = _read(path) | {"config": now}
    before, now = config_values.flatten(before), config_values.flatten(now)
    length = identity.LENGTH
    if now.get(_SCHEDULE) != "constant":
        ends = f"{before[length]:,} env frames"
        if not extend:
            raise WorkdirError(
                f"{path.parent} has a learning rate that falls to zero at {ends}, so that "
                f"{length}={now[length]} is another schedule: with --extend the run goes on with "
                f"the rate that a schedule to there has, which is higher; else use {length}="
                f"{before[length]}, or another --workdir"
            )
        logging.warning(
            "the learning rate falls to zero at %s env frames from now on instead of at %s: it "
            "jumps up where the run stands", f"{now[length]:,}", f"{before[length]:,}",
        )  # fmt: skip
        # Curves of such a run are no curves of one that was planned so long.
        noted.setdefault("extended_from_env_frames", []).append(before[length])
    # Of a sweep, and before its frames: cut short in between, agents only report themselves again.
    for name in (FINISHED, FINISHED_AGENTS):
        if (path.parent / name).exists():
            (path.parent / name).rename(path.parent / f"{name}_{before[length]}")
    _write(path, noted)


def _check_same_config(path: pathlib.Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    differing = identity.differences(before, now)
    if differing:
        shown = ", ".join(differing[:_MOST_SHOWN])
        if len(differing) > _MOST_SHOWN:
            shown += f" and {len(differing) - _MOST_SHOWN} more keys"
        command = _read(path).get(COMMAND)
        resumes = f"resume with: {command}" if command else "the same values to resume"
        raise WorkdirError(
            f"{path.parent} belongs to a {_KINDS[path.name]} of another config: {shown}. Use "
            f"another --workdir, or {resumes}"
        )
