"""Sends the contents of a run directory to a service that tracks experiments."""

import pathlib

from laser_tf import errors
from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import episode_log, evaluation_log, experiment_services, tensorboard
from laser_tf.workdir import run_directory


def send_run(workdir: pathlib.Path, service: str, project: str) -> int:
    """Sends configuration, new scalars and results of a run; returns the number of new rows.

    The run, which may be in progress, continues in the service, "wandb" or "mlflow". `project` is
    W&B's project or MLflow's experiment.

    Raises:
      UserError: If the service's package is missing or fails, or there is no run with scalars.
    """
    run_directory.read_config(workdir)  # Raises before the package is imported.
    opened = experiment_services.Service(service, f"--track={service}")
    rows = tensorboard.read_rows(workdir / "tensorboard")
    if not rows:
        raise errors.UserError(f"{workdir} holds no metrics yet. Train first.")
    with opened.open(workdir, project) as run:
        newer = {frames for frames in rows if frames > run.env_frames}
        for env_frames, row in rows.items():
            if env_frames not in newer:  # Evaluations may end late; repeating is harmless.
                row = {name: value for name, value in row.items() if "evaluation" in name}
            if row:
                run.log(env_frames, row)
        names = (episode_log.FILE, evaluation_log.FILE, evaluation_files.result_file(workdir).name)
        for result in filter(pathlib.Path.exists, map(workdir.joinpath, names)):
            run.save(result)
    run.record(max(rows))
    return len(newer)
