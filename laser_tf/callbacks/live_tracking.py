"""Callbacks that send a run to Weights & Biases or MLflow while it trains."""

import contextlib
import logging
import math
from collections.abc import Mapping
from typing import ClassVar

from laser_tf import errors
from laser_tf.host import log_messages
from laser_tf.monitoring import episode_log, evaluation_log, experiment_services
from laser_tf.training import callbacks


class _Tracking(callbacks.Callback):
    """Sends each row of TensorBoard, and the logs of episodes and evaluations at the end.

    A resumed run, and `launch.plot --track`, continue the same run at the service. While the
    service fails, training continues without it.
    """

    _name: ClassVar[str]  # name of the service

    def __init__(self, project: str = "laser_tf"):
        """Imports the package of the service; raises MissingPackageError if it is missing."""
        self._service = experiment_services.Service(self._name, type(self).__name__)
        self._project = project
        self._notice = log_messages.FailureNotice(f"{self._name} receives rows again.")

    def on_start(self, run: callbacks.Run) -> None:
        """See `Callback`; raises UserError if the service fails."""
        from laser_tf.monitoring import tensorboard  # It loads TensorFlow.

        self._open = contextlib.ExitStack()
        opened = self._service.open(run.workdir, self._project)
        self._tracked = self._open.enter_context(opened)
        rows = tensorboard.read_rows(run.workdir / "tensorboard")
        # Whether the service lacks a row that `launch.plot` can send, also of an earlier process.
        self._has_gap = max(rows, default=-1) > self._tracked.env_frames

    def on_metrics(self, run: callbacks.Run, metrics: Mapping[str, float]) -> None:
        """See `Callback`. After a crash, rows that were sent before are not sent again."""
        if run.env_frames > self._tracked.env_frames:
            self._send(run.env_frames, metrics, is_recorded=True)

    def on_evaluation(self, run: callbacks.Run, evaluation: callbacks.Evaluation) -> None:
        """See `Callback`."""
        row = evaluation_log.metrics(run.config.environment.suite, evaluation.summary)
        self._send(evaluation.env_frames, row, is_recorded=False)

    def _send(self, env_frames: int, row: Mapping[str, float], *, is_recorded: bool) -> None:
        """Sends a row without its NaNs; logs the first of several failures."""
        finite = {name: value for name, value in row.items() if not math.isnan(value)}
        try:
            self._tracked.log(env_frames, finite)
            if is_recorded and not self._has_gap:
                self._tracked.record(env_frames)
        except (self._service.error, OSError) as error:
            self._has_gap = True
            self._notice.failed(
                f"{self._name}: {errors.one_line(error)}. Training continues; send the missing "
                f"rows later by launch.plot --track={self._name}."
            )
        else:
            self._notice.succeeded()

    def on_end(self, run: callbacks.Run) -> None:
        """See `Callback`; a failure is logged."""
        try:
            with self._open:
                for name in (episode_log.FILE, evaluation_log.FILE):
                    if (run.workdir / name).exists():
                        self._tracked.save(run.workdir / name)
        except errors.UserError as error:
            logging.warning("%s", error)


class WandbCallback(_Tracking):
    """Sends a run to Weights & Biases while it trains; `project` is the project there."""

    _name = "wandb"


class MlflowCallback(_Tracking):
    """Sends a run to MLflow while it trains; `project` is the experiment there."""

    _name = "mlflow"
