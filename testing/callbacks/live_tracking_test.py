"""Services that track experiments receive rows while a run trains."""

import json
import math
import sys
import types
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf import callbacks, errors
from laser_tf.monitoring import experiment_services, tensorboard
from laser_tf.plotting import tracking
from laser_tf.workdir import run_directory
from testing import folders, messages
from testing.callbacks import views

EVALUATION = {"episode/evaluation_mean_return": 0.5, "throughput/evaluation_seconds": 2.5}


class ServiceError(Exception):
    """Error of a service's package."""


def _mlflow():
    mlflow = mock.MagicMock(MlflowException=ServiceError)
    mlflow.start_run.return_value.__enter__.return_value.info.run_id = "abc"
    mlflow.start_run.return_value.__exit__.return_value = False
    return mlflow


class LiveTrackingTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._workdir = self._folder / "catch1"
        run_directory.open_workdir(self._workdir, {"run": {"seed": 7}}, {})
        (self._workdir / "episodes.csv").write_text("")

    def _start(self, kind, package):
        name = {callbacks.WandbCallback: "wandb", callbacks.MlflowCallback: "mlflow"}[kind]
        with mock.patch.dict(sys.modules, {name: package}):
            callback = kind(project="mine")
        callback.on_start(views.run(self._workdir))
        return callback

    def _send(self, callback, *frames):
        for env_frames in frames:
            run = views.run(self._workdir, counts=(env_frames, 1))
            callback.on_metrics(run, {"loss/policy": env_frames / 2, "replay/fill": math.nan})

    def test_wandb_receives_rows_evaluations_and_files(self):
        wandb = mock.Mock(Error=ServiceError)
        callback = self._start(callbacks.WandbCallback, wandb)
        given = wandb.init.call_args.kwargs
        self.assertEqual(
            (given["project"], given["name"], given["config"]), ("mine", "catch1", {"run.seed": 7})
        )
        run = wandb.init.return_value
        self._send(callback, 100)
        callback.on_evaluation(views.run(self._workdir), views.evaluation(0.5, env_frames=50))
        self.assertEqual(
            [call.args[0] for call in run.log.call_args_list],
            [{"env_frames": 100, "loss/policy": 50.0}, {"env_frames": 50} | EVALUATION],
        )
        run.finish.assert_not_called()
        callback.on_end(views.run(self._workdir))
        self.assertEqual(run.save.call_args.args, (str(self._workdir / "episodes.csv"),))
        run.finish.assert_called_once_with()

    def test_mlflow_receives_rows_evaluations_and_files(self):
        mlflow = _mlflow()
        callback = self._start(callbacks.MlflowCallback, mlflow)
        mlflow.set_experiment.assert_called_once_with("mine")
        mlflow.log_params.assert_called_once_with({"run.seed": 7})
        self._send(callback, 100)
        callback.on_evaluation(views.run(self._workdir), views.evaluation(0.5, env_frames=50))
        self.assertEqual(
            mlflow.log_metrics.call_args_list,
            [mock.call({"loss/policy": 50.0}, step=100), mock.call(EVALUATION, step=50)],
        )
        callback.on_end(views.run(self._workdir))
        mlflow.log_artifact.assert_called_once_with(str(self._workdir / "episodes.csv"))
        mlflow.start_run.return_value.__exit__.assert_called_once()

    def test_resumed_run_continues_and_repeats_no_row(self):
        first, second = _mlflow(), _mlflow()
        self._send(self._start(callbacks.MlflowCallback, first), 100, 200)  # Then it is killed.
        self._send(self._start(callbacks.MlflowCallback, second), 150, 200, 250)
        second.start_run.assert_called_once_with(run_id="abc")
        steps = [call.kwargs["step"] for call in second.log_metrics.call_args_list]
        self.assertEqual(steps, [250])

    def test_several_services_have_their_own_records(self):
        wandb = mock.Mock(Error=ServiceError)
        started = [
            self._start(callbacks.WandbCallback, wandb),
            self._start(callbacks.MlflowCallback, _mlflow()),
        ]
        for callback in started:
            self._send(callback, 100, 200)
        entries = json.loads((self._workdir / experiment_services.FILE).read_text())
        ids = {"wandb:mine": wandb.init.call_args.kwargs["id"], "mlflow:mine": "abc"}
        self.assertEqual(
            entries, {key: {"id": run_id, "env_frames": 200} for key, run_id in ids.items()}
        )

    @parameterized.parameters(ServiceError, PermissionError)
    def test_failure_is_logged_and_its_rows_are_sent_later(self, failure):
        writer = tensorboard.MetricsWriter(self._workdir / "tensorboard")
        mlflow, later = _mlflow(), _mlflow()
        callback = self._start(callbacks.MlflowCallback, mlflow)
        for env_frames in (100, 200, 300):
            writer.write(env_frames, {"loss/policy": env_frames / 2})
        self._send(callback, 100)
        mlflow.log_metrics.side_effect = failure("no such\nserver")
        with messages.warns("no such server", "--track=mlflow"):
            self._send(callback, 200, 250)
        mlflow.log_metrics.side_effect = None
        self._send(callback, 300)
        mlflow.log_artifact.side_effect = failure("no such server")
        with self.assertLogs(level="WARNING"):
            callback.on_end(views.run(self._workdir))
        resumed = self._start(callbacks.MlflowCallback, _mlflow())
        writer.write(400, {"loss/policy": 200.0})
        self._send(resumed, 400)
        with mock.patch.dict(sys.modules, {"mlflow": later}):
            self.assertEqual(tracking.send_run(self._workdir, "mlflow", "mine"), 3)
        steps = [call.kwargs["step"] for call in later.log_metrics.call_args_list]
        self.assertEqual(steps, [200, 300, 400])
        later.start_run.assert_called_once_with(run_id="abc")

    def test_error_at_the_start_is_one_line(self):
        wandb = mock.Mock(Error=ServiceError)
        wandb.init.side_effect = ServiceError("no API key\nconfigured")
        with messages.raises(errors.UserError, "wandb", "no API key configured", "WANDB_MODE"):
            self._start(callbacks.WandbCallback, wandb)

    @parameterized.parameters(
        (callbacks.WandbCallback, "pip install wandb==0.19.11"),
        (callbacks.MlflowCallback, "pip install mlflow-skinny==3.17.2"),
    )
    def test_missing_package_is_named(self, kind, command):
        with messages.raises(errors.UserError, kind.__name__, command):
            self._start(kind, None)  # Python's mark of a module that cannot be imported.

    def test_directory_named_like_a_package_is_not_used(self):
        with messages.raises(errors.UserError, "pip install wandb==0.19.11"):
            self._start(callbacks.WandbCallback, types.ModuleType("wandb"))


if __name__ == "__main__":
    absltest.main()
