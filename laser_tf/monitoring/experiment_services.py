"""Runs at services that track experiments: Weights & Biases and MLflow."""

import contextlib
import importlib
import json
import pathlib
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from laser_tf import config_values, errors
from laser_tf.workdir import atomic, run_directory

FILE = "tracking.json"  # in a run directory: "service:project" -> id and env_frames sent so far


class _Run(NamedTuple):
    id: str
    log: Callable[[int, Mapping[str, float]], object]  # env frames, metrics
    save: Callable[[pathlib.Path], object]


class _Kind(NamedTuple):
    requirements: str  # that pip installs
    failure: str  # class of the package's errors
    remedy: str  # of most of them
    open: Callable[..., contextlib.AbstractContextManager[_Run]]


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


_KINDS = {
    "wandb": _Kind(
        "wandb==0.19.11",  # newer releases lack the protobuf 4 that Reverb needs
        "Error",
        "run `wandb login`, or keep files for `wandb sync`: WANDB_MODE=offline",
        _open_wandb,
    ),
    "mlflow": _Kind(
        # mlflow-skinny does not install what MLflow's default, a SQLite file, needs.
        "mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1",
        "MlflowException",
        "MLFLOW_TRACKING_URI names a server or, with sqlalchemy and alembic installed, a file, "
        "e.g. http://HOST:5000 or sqlite:///runs.db",
        _open_mlflow,
    ),
}


class TrackedRun:
    """A run at a service, and the record in the run directory of what it has received.

    Attributes:
      env_frames: Env frames of the last recorded row; -1 before the first.
      log: Sends a row without NaNs, given its env frames, without recording it.
      save: Sends a file, given its path.
    """

    env_frames: int

    def __init__(self, run: _Run, path: pathlib.Path, key: str, env_frames: int):
        self.log = run.log
        self.save = run.save
        self._id = run.id
        self._path = path
        self._key = key
        self.record(env_frames)  # A failed process continues this run, too.

    def record(self, env_frames: int) -> None:
        """Records that all rows up to a number of env frames were sent."""
        self.env_frames = env_frames
        entries = _read_entries(self._path)  # Now, because a run may have several services.
        entries[self._key] = {"id": self._id, "env_frames": env_frames}
        atomic.write(self._path, json.dumps(entries, indent=2) + "\n")


def _read_entries(path: pathlib.Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


class Service:
    """W&B or MLflow, whose package is imported.

    Attributes:
      error: Class of the package's errors.
    """

    def __init__(self, name: str, user: str):
        """Imports the package; raises MissingPackageError if a package is missing.

        `user` is the flag or class that uses the service, for the message.
        """
        self._name = name
        self._kind = _KINDS[name]
        try:
            self._package = importlib.import_module(name)
            # W&B's directory `wandb` of results can be imported, but is empty.
            self.error: type[Exception] = getattr(self._package, self._kind.failure)
        except (ImportError, AttributeError) as error:
            raise errors.MissingPackageError(
                f"{user}: {error}. Run: pip install {self._kind.requirements}"
            ) from None

    @contextlib.contextmanager
    def open(self, workdir: pathlib.Path, project: str) -> Iterator[TrackedRun]:
        """Yields the service's run of a run directory, new or continued.

        `project` is W&B's project or MLflow's experiment.

        Raises:
          WorkdirError: If the directory holds no run.
          UserError: If the package raises an error, a file cannot be written, or `tracking.json` is
            damaged.
        """
        config = config_values.flatten(run_directory.read_config(workdir))
        config.pop("environment.pickled_function", None)  # The user's code stays here.
        path, key = workdir / FILE, f"{self._name}:{project}"
        try:
            entry = _read_entries(path).get(key, {"id": "", "env_frames": -1})
            run_id, env_frames = entry["id"], int(entry["env_frames"])
        except (ValueError, TypeError, KeyError, AttributeError):
            raise errors.UserError(
                f"{path} is damaged. Delete it to create a new run at the service."
            ) from None
        name = workdir.absolute().name
        try:
            with self._kind.open(self._package, project, name, config, run_id) as run:
                yield TrackedRun(run, path, key, env_frames)
        except (self.error, OSError) as error:  # MLflow copies files to the path of a server.
            remedy = self._kind.remedy
            if run_id:
                remedy += f"; to create a new run at the service, delete {path}"
            raise errors.UserError(f"{self._name}: {errors.one_line(error)}; {remedy}") from None
