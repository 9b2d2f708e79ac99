"""The directory of a run or a sweep: layout, creation, configuration file, checks on resumption."""

import json
import logging
import pathlib
import shlex
from collections.abc import Collection, Mapping
from typing import Any

from laser_tf import config_values, errors
from laser_tf.workdir import atomic, identity, lock, overrides

CONFIG_FILE, SWEEP_FILE, SEARCH_FILE = "config.json", "sweep.json", "search.json"
LEARNER_CHECKPOINTS = "checkpoints/learner"
BEST_CHECKPOINT = "checkpoints/best"
REPLAY_CHECKPOINT = "checkpoints/replay"
SEQUENCES_CHECKPOINT = "checkpoints/sequences.zip"
FINISHED, FINISHED_MEMBERS = "finished", "finished_members"  # marks in a sweep's directory
ORIGIN = "init_from"  # key of config.json: the run that provided the initial weights
COMMAND = "command"  # key of both files: the command that created the run or sweep

_HAS_CHECKPOINT = "has_checkpoint"  # key of config.json: whether weights were ever saved
_KINDS = {CONFIG_FILE: "run", SWEEP_FILE: "sweep", SEARCH_FILE: "search"}
_DIRECTORIES = {
    CONFIG_FILE: (LEARNER_CHECKPOINTS, REPLAY_CHECKPOINT, "tensorboard", "videos"),
    SWEEP_FILE: ("tensorboard",),
    SEARCH_FILE: (),
}
# Glob patterns of files that exist only after the start of a run or a sweep.
_TRACES = (
    "evaluation.json", "episodes.csv", f"{REPLAY_CHECKPOINT}/*", f"{LEARNER_CHECKPOINTS}/*",
    "member_*/config.json", "population/*", f"{FINISHED_MEMBERS}/*", "replay/*",
    "study.log", "trial_*/config.json",
)  # fmt: skip
_SCHEDULE = "learner.learning_rate_schedule"


class WorkdirError(errors.UserError):
    """A run directory cannot be used. The message states the reason and a remedy."""


def has_checkpoint(workdir: pathlib.Path) -> bool:
    """Returns whether a run directory holds weights."""
    return any((workdir / LEARNER_CHECKPOINTS).glob("checkpoint-*.index"))


def open_workdir(
    workdir: pathlib.Path,
    config: dict[str, Any],
    extra: dict[str, Any],
    sweep_id: str = "",
    **options: Any,
) -> bool:
    """Creates and locks a run directory, or checks it; see `open_directory`, also for `options`.

    Raises WorkdirError also if the run is not part of the sweep with the id `sweep_id`, "" for a
    single run, or has lost its checkpoints.
    """
    path = workdir / CONFIG_FILE
    if path.exists() and _read(path).get("sweep_id", "") != sweep_id:
        raise WorkdirError(
            f"{workdir} belongs to a single run or to another sweep. Use another --workdir."
        )
    resumed = open_directory(path, config, {"sweep_id": sweep_id, **extra}, **options)
    content = _read(path)
    # A run that ended before its first checkpoint starts again.
    if content.get(_HAS_CHECKPOINT) and not has_checkpoint(workdir):
        raise WorkdirError(
            f"{workdir / LEARNER_CHECKPOINTS} must hold a checkpoint of this run, but all are "
            "missing. Restore them from a backup, or start again with another --workdir."
        )
    if resumed and ORIGIN in extra:  # The run starts again from the newest weights there.
        _write(path, content | {ORIGIN: extra[ORIGIN]})
    return resumed


def open_directory(
    path: pathlib.Path,
    config: dict[str, Any],
    extra: dict[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    extend: bool | None = False,
    patience_seconds: float = 0.0,
    overridden: Collection[str] = (),
) -> bool:
    """Creates and locks a directory, or checks its configuration; returns whether it existed.

    A larger `run.env_frames` continues a run or a sweep if the learning rate is constant.

    Args:
      path: Configuration file: `CONFIG_FILE`, `SWEEP_FILE` or `SEARCH_FILE` of the directory.
      config: Resolved configuration, nested.
      extra: Further content of the file, e.g. versions or the `id` of a sweep.
      defaults: Values of keys that are missing in an existing file, nested.
      extend: Whether a learning rate schedule may end later than before; None: `run.env_frames`
        may not change.
      patience_seconds: Timeout for another process that is leaving the directory.
      overridden: Keys `section.key` of `overrides.KEYS` whose values may differ and are recorded.

    Raises:
      WorkdirError: If the directory cannot be written or belongs to another configuration.
      InUseError: If another process uses the directory.
    """
    workdir = path.parent
    config, defaults = json.loads(json.dumps((config, defaults or {})))
    if not path.exists():
        _check_unused(workdir)
    if str(workdir) != errors.printable(str(workdir)):  # Protocol buffers reject other names.
        raise WorkdirError(f"--workdir must be a path in UTF-8, got {workdir}. Use another name.")
    if not workdir.is_dir() and (workdir.exists() or workdir.is_symlink()):
        raise WorkdirError(
            f"{workdir} must be a directory, got a file or a link to a missing path. Use another "
            "--workdir."
        )
    try:
        for name in ("", *_DIRECTORIES[path.name]):
            (workdir / name).mkdir(parents=True, exist_ok=True)
        lock.acquire(workdir / lock.FILE, patience_seconds)
    except OSError as error:
        raise _not_writable(workdir, error) from None
    if not path.exists():
        _write(path, {"config": config, **extra})
        return False
    content = _read(path)
    before = identity.with_defaults(content["config"], defaults)
    now = identity.with_defaults(config, defaults)
    if before == now:  # Evaluations and a resumption without --config read the file.
        return True
    content, before_with_changes = overrides.record(content, before, now, overridden)
    content["config"] = now
    if extend is not None and identity.only_extends(before_with_changes, now):
        _extend(path, content, before, extend or identity.LENGTH in overridden)
    elif differences := identity.describe_differences(before_with_changes, now):
        changes, resumes = "", "the same values"
        if path.name == CONFIG_FILE:
            changes = overrides.flags(before_with_changes, now)
            resumes = f"python -m launch.train --workdir={shlex.quote(str(workdir))}"
        change = f"{changes} to change the run, " if changes else ""
        raise WorkdirError(
            f"{workdir} belongs to a {_KINDS[path.name]} of another config: {differences}. Use "
            f"{change}another --workdir, or resume with: {resumes}"
        )
    else:
        _write(path, content)
    return True


def _check_unused(workdir: pathlib.Path) -> None:
    if any((workdir / name).exists() for name in _KINDS):
        raise WorkdirError(f"{workdir} already holds a run or sweep. Use another --workdir.")
    found = next((match for trace in _TRACES for match in workdir.glob(trace)), None)
    if found:
        raise WorkdirError(
            f"{workdir} holds files of an earlier run or sweep (e.g. {found.relative_to(workdir)}) "
            f"but no {' or '.join(_KINDS)}. Restore that file from a backup, or use another "
            "--workdir."
        )


def _extend(
    path: pathlib.Path, content: dict[str, Any], before: dict[str, Any], extend: bool
) -> None:
    before, now = config_values.flatten(before), config_values.flatten(content["config"])
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
    try:
        for name in (FINISHED, FINISHED_MEMBERS):
            if path.with_name(name).exists():
                atomic.replace(path.with_name(name), path.with_name(f"{name}_{old}"))
    except OSError as error:
        raise _not_writable(path, error) from None
    _write(path, content)


def mark_checkpointed(workdir: pathlib.Path) -> None:
    """Records in `config.json` that weights were saved, so that their loss is detected."""
    content = _read(workdir / CONFIG_FILE)
    if not content.get(_HAS_CHECKPOINT):
        _write(workdir / CONFIG_FILE, content | {_HAS_CHECKPOINT: True})


def read_overrides(workdir: pathlib.Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a run that replace values of a command; see `overrides.in_effect`."""
    return overrides.in_effect(_read(workdir / CONFIG_FILE), config)


def record_overrides(workdir: pathlib.Path, env_frames: int) -> list[dict[str, Any]]:
    """Records the env frames at which new overrides take effect, and returns the overrides."""
    content = _read(workdir / CONFIG_FILE)
    completed = overrides.complete(content, env_frames)
    if completed:
        _write(workdir / CONFIG_FILE, content)
    return completed


def read_config(workdir: pathlib.Path) -> dict[str, Any]:
    """Returns the configuration of a run; raises WorkdirError if it is missing or damaged."""
    return _read(workdir / CONFIG_FILE)["config"]


def check_no_sweep(workdir: pathlib.Path) -> None:
    """Raises WorkdirError for a sweep or a search, which names a run directory in it."""
    for name in (SWEEP_FILE, SEARCH_FILE):
        if (workdir / name).exists():
            run = min(workdir.glob(f"*/{CONFIG_FILE}"), default=workdir / "agent" / CONFIG_FILE)
            raise WorkdirError(
                f"{workdir} holds a {_KINDS[name]}. Name the directory of one run in it: "
                f"{run.parent}"
            )


def read_origin(workdir: pathlib.Path) -> str:
    """Returns the directory of the run that provided the initial weights; "" for fresh weights."""
    return _read(workdir / CONFIG_FILE).get(ORIGIN, {}).get("workdir", "")


def read_sweep_id(workdir: pathlib.Path) -> str:
    """Returns the id of the sweep in a directory."""
    return _read(workdir / SWEEP_FILE).get("id", "")


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
        if not all(isinstance(section, dict) for section in content["config"].values()):
            raise ValueError("'config' must have sections with keys")
        return content
    except FileNotFoundError:
        check_no_sweep(path.parent)
        message = f"{path.parent} holds no {_KINDS[path.name]}: {path} is missing"
        raise WorkdirError(message) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkdirError(
            f"cannot read {path}: {errors.first_line(error)}. Restore it from a backup, or use "
            "another --workdir."
        ) from None


def _write(path: pathlib.Path, content: dict[str, Any]) -> None:
    try:
        atomic.write(path, json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise _not_writable(path, error) from None


def _not_writable(path: pathlib.Path, error: OSError) -> WorkdirError:
    return WorkdirError(
        f"cannot write {error.filename or path}: {error.strerror}. Fix this, or use another "
        "--workdir"
    )
