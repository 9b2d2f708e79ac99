"""Sends the contents of a run directory to a service that tracks experiments."""

import contextlib
import importlib
import json
import pathlib
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from laser_tf import config_values, errors
from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import episode_log, evaluation_log, tensorboard
from laser_tf.workdir import atomic, run_directory

FILE = "tracking.json"  # in a run directory: "service:project" -> id and env_frames sent so far


class _Service(NamedTuple):
    requirements: str  # that pip installs
    failure: str  # class of the package's errors
    remedy: str  # of most of them
    open: Callable[..., contextlib.AbstractContextManager["_Run"]]


class _Run(NamedTuple):
    """A run at a service."""

    id: str
    log: Callable[[int, dict[str, float]], object]  # env frames, metrics
    save: Callable[[pathlib.Path], object]


@contextlib.contextmanager
def _open_wandb(
    wandb: types.ModuleType, project: str, name: str, config: dict[str, Any], run_id: str
) -> Iterator[_Run]:
    run_id = run_id or uuid.uuid4().hex
    run = wandb.init(
        project=project,
        name=name,
        id=run_id,
        resume="allow",
        config=config,
        allow_val_change=True,  # A resumed run may be longer.
    )
    run.define_metric("*", step_metric="env_frames")
    yield _Run(
        run_id,
        lambda env_frames, row: run.log({"env_frames": env_frames, **row}),
        lambda path: run.save(str(path), base_path=str(path.parent), policy="now"),
    )
    run.finish()


@contextlib.contextmanager
def _open_mlflow(
    mlflow: types.ModuleType, project: str, name: str, config: dict[str, Any], run_id: str
) -> Iterator[_Run]:
    mlflow.set_experiment(project)
    with mlflow.start_run(**({"run_id": run_id} if run_id else {"run_name": name})) as run:
        if not run_id:  # MLflow rejects changed parameters.
            mlflow.log_params(config)
        yield _Run(
            run.info.run_id,
            lambda env_frames, row: mlflow.log_metrics(row, step=env_frames),
            lambda path: mlflow.log_artifact(str(path)),
        )


_SERVICES = {
    "wandb": _Service(
        "wandb==0.19.11",  # newer releases lack the protobuf 4 that Reverb needs
        "Error",
        "run `wandb login`, or keep files for `wandb sync`: WANDB_MODE=offline",
        _open_wandb,
    ),
    "mlflow": _Service(
        # mlflow-skinny does not install what MLflow's default, a SQLite file, needs.
        "mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1",
        "MlflowException",
        "MLFLOW_TRACKING_URI names a server or, with sqlalchemy and alembic installed, a file, "
        "e.g. http://HOST:5000 or sqlite:///runs.db",
        _open_mlflow,
    ),
}
SERVICES = tuple(_SERVICES)


def hand_over(workdir: pathlib.Path, service: str, project: str) -> int:
    """Sends configuration, new rows of scalars and results to a new or continued run of a service.

    Args:
      workdir: Directory of a run, which may be in progress.
      service: One of `SERVICES`; its package reads its own environment variables.
      project: W&B's project or MLflow's experiment.

    Returns:
      The number of new rows.

    Raises:
      WorkdirError: If the directory holds no run.
      UserError: If the service's package is missing or fails, or the run has no scalars yet.
    """
    config = config_values.flatten(run_directory.read_config(workdir))
    chosen = _SERVICES[service]
    try:
        package = importlib.import_module(service)
    except ImportError as error:  # of the package, or of something that it needs
        raise errors.UserError(
            f"--track={service}: {error}. Run: pip install {chosen.requirements}"
        ) from None
    rows = tensorboard.read_rows(workdir / "tensorboard")
    if not rows:
        raise errors.UserError(f"{workdir} holds no metrics yet. Train first.")
    path = workdir / FILE
    try:
        entries = json.loads(path.read_text()) if path.exists() else {}
        entry = entries.setdefault(f"{service}:{project}", {"id": "", "env_frames": -1})
        run_id, last = entry["id"], entry["env_frames"]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise errors.UserError(
            f"{path} is damaged. Delete it to create a new run at the service."
        ) from None
    newer = {frames: row for frames, row in rows.items() if frames > last}
    name = workdir.absolute().name
    try:
        with chosen.open(package, project, name, config, run_id) as run:
            # Written before the rows are sent, so that a failed call continues this run.
            entry["id"] = run.id
            atomic.write(path, json.dumps(entries, indent=2) + "\n")
            for env_frames, row in newer.items():
                run.log(env_frames, row)
            for result in _result_files(workdir):
                run.save(result)
    except getattr(package, chosen.failure) as error:
        remedy = chosen.remedy
        if run_id:
            remedy += f"; to create a new run at the service, delete {path}"
        raise errors.UserError(f"{service}: {errors.one_line(error)}; {remedy}") from None
    entry["env_frames"] = max(rows)
    atomic.write(path, json.dumps(entries, indent=2) + "\n")
    return len(newer)


def _result_files(workdir: pathlib.Path) -> list[pathlib.Path]:
    names = (episode_log.FILE, evaluation_log.FILE, evaluation_files.result_file(workdir).name)
    return [workdir / name for name in names if (workdir / name).exists()]
