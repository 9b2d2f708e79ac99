"""Hands what lies in a run's folder to a service that keeps experiments."""

import importlib
import pathlib
import types
from typing import Any

from laser_tf import config_values, errors
from laser_tf.evaluation import evaluation_files
from laser_tf.host import run_folder
from laser_tf.monitoring import episode_log, evaluation_log, tensorboard

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


def hand_over(workdir: pathlib.Path, service: str, project: str) -> int:
    """Makes one run of the service's: configuration, scalars over env frames, results.

    Args:
      workdir: of a run, finished or going on.
      service: one of `SERVICES`; its package reads its own environment variables.
      project: W&B's project or MLflow's experiment.

    Returns:
      How many rows of scalars it got.

    Raises:
      WorkdirError: if the folder holds no run.
      UserError: if the service's package is missing or refuses, or the run has no scalars yet.
    """
    config = config_values.flatten(run_folder.read_config(workdir))
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
    send = {"wandb": _to_wandb, "mlflow": _to_mlflow}[service]
    failure, remedy = _FAILURES[service]
    try:
        send(package, project, workdir.absolute().name, config, rows, files)
    except getattr(package, failure) as error:
        raise errors.UserError(f"{service}: {errors.one_line(error)}; {remedy}") from None
    return len(rows)


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
) -> None:
    run = wandb.init(project=project, name=name, config=config)
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
) -> None:
    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=name):
        mlflow.log_params(config)
        for env_frames, row in rows.items():
            mlflow.log_metrics(row, step=env_frames)
        for path in files:
            mlflow.log_artifact(str(path))
