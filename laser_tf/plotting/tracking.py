"""Hands what lies in a run's folder to a service that keeps experiments."""

import contextlib
import importlib
import json
import pathlib
import types
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from laser_tf import config_values, errors
from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import episode_log, evaluation_log, tensorboard
from laser_tf.workdir import atomic, run_directory

# Package -> what to install. Newer releases of wandb lack the protobuf 4 that Reverb needs.
# mlflow-skinny does not install what MLflow's default, a SQLite file, needs.
_INSTALLED_BY = {
    "wandb": "wandb==0.19.11",
    "mlflow": "mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1",
}
SERVICES = tuple(_INSTALLED_BY)

# Package -> the class of its errors, and what a user does about most of them.
_FAILURES = {
    "wandb": ("Error", "run `wandb login`, or keep files for `wandb sync`: WANDB_MODE=offline"),
    "mlflow": (
        "MlflowException",
        "MLFLOW_TRACKING_URI names a server or, with sqlalchemy and alembic installed, a file, "
        "e.g. http://HOST:5000 or sqlite:///runs.db",
    ),
}


FILE = "tracking.json"  # in a run's directory: service and project -> `Sent`


class Sent(NamedTuple):
    """State of a run at a service."""

    id: str  # of the service's run
    env_frames: int = -1  # of the last row that the service has; -1: none


def hand_over(workdir: pathlib.Path, service: str, project: str) -> int:
    """Creates or continues the service's run: configuration, scalars over env frames, results.

    `FILE` in the run's directory holds the identity of the service's run, so that the service gets
    each row once.

    Args:
      workdir: Directory of a run, which may be in progress.
      service: one of `SERVICES`; its package reads its own environment variables.
      project: W&B's project or MLflow's experiment.

    Returns:
      The number of new rows of scalars that the service got.

    Raises:
      WorkdirError: if the folder holds no run.
      UserError: if the service's package is missing or refuses, or the run has no scalars yet.
    """
    config = config_values.flatten(run_directory.read_config(workdir))
    package = _import(service)
    rows = tensorboard.read_rows(workdir / "tensorboard")
    if not rows:
        raise errors.UserError(f"{workdir} holds no metrics yet: train first")
    results = (
        workdir / episode_log.FILE,
        workdir / evaluation_log.FILE,
        evaluation_files.result_file(workdir),
    )
    files = [path for path in results if path.exists()]
    key = f"{service}:{project}"
    sent = _read_sent(workdir).get(key)
    newer = {frames: row for frames, row in rows.items() if not sent or frames > sent.env_frames}
    send = {"wandb": _to_wandb, "mlflow": _to_mlflow}[service]
    failure, remedy = _FAILURES[service]
    try:
        send(
            package,
            project,
            workdir.absolute().name,
            config,
            newer,
            files,
            sent.id if sent else "",
            lambda run_id: _note(workdir, key, sent or Sent(run_id)),
        )
    except getattr(package, failure) as error:
        if sent:
            remedy += f"; to create a new run at the service, delete {workdir / FILE}"
        raise errors.UserError(f"{service}: {errors.one_line(error)}; {remedy}") from None
    _note(workdir, key, _read_sent(workdir)[key]._replace(env_frames=max(rows)))
    return len(newer)


def _read_sent(workdir: pathlib.Path) -> dict[str, Sent]:
    path = workdir / FILE
    with contextlib.suppress(FileNotFoundError):
        try:
            return {
                key: Sent(str(entry["id"]), int(entry["env_frames"]))
                for key, entry in json.loads(path.read_text()).items()
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            raise errors.UserError(
                f"{path} is damaged: delete it to create a new run at the service"
            ) from None
    return {}


def _note(workdir: pathlib.Path, key: str, sent: Sent) -> None:
    entries = _read_sent(workdir) | {key: sent}
    content = {name: entry._asdict() for name, entry in entries.items()}
    atomic.write(workdir / FILE, json.dumps(content, indent=2) + "\n")


def _import(service: str) -> types.ModuleType:
    try:
        return importlib.import_module(service)
    except ImportError as error:  # of the package, or of something that it needs
        raise errors.UserError(
            f"--to={service}: {error}; run: pip install {_INSTALLED_BY[service]}"
        ) from None


def _to_wandb(
    wandb: types.ModuleType,
    project: str,
    name: str,
    config: dict[str, Any],
    rows: dict[int, dict[str, float]],
    files: list[pathlib.Path],
    run_id: str,
    on_created: Callable[[str], None],
) -> None:
    run_id = run_id or uuid.uuid4().hex
    run = wandb.init(
        project=project,
        name=name,
        id=run_id,
        resume="allow",
        config=config,
        allow_val_change=True,  # A resumed run may be longer.
    )
    on_created(run_id)
    run.define_metric("*", step_metric="env_frames")
    for env_frames, row in rows.items():
        run.log({"env_frames": env_frames, **row})
    for path in files:
        run.save(str(path), base_path=str(path.parent), policy="now")
    run.finish()


def _to_mlflow(
    mlflow: types.ModuleType,
    project: str,
    name: str,
    config: dict[str, Any],
    rows: dict[int, dict[str, float]],
    files: list[pathlib.Path],
    run_id: str,
    on_created: Callable[[str], None],
) -> None:
    mlflow.set_experiment(project)
    with mlflow.start_run(**({"run_id": run_id} if run_id else {"run_name": name})) as run:
        on_created(run.info.run_id)
        if not run_id:  # MLflow rejects changed parameters.
            mlflow.log_params(config)
        for env_frames, row in rows.items():
            mlflow.log_metrics(row, step=env_frames)
        for path in files:
            mlflow.log_artifact(str(path))
