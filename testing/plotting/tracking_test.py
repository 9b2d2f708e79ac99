"""What experiment trackers get is what the run's files hold."""

import math
import sys
from unittest import mock

from absl.testing import absltest

from laser_tf import errors
from laser_tf.monitoring import evaluation_log, experiment_services, tensorboard
from laser_tf.plotting import tracking
from laser_tf.workdir import run_directory
from testing import folders, messages


def _mlflow(**attributes) -> mock.MagicMock:
    mlflow = mock.MagicMock(**attributes)
    mlflow.start_run.return_value.__enter__.return_value.info.run_id = "abc"
    return mlflow


class TrackingTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._workdir = self._folder / "pong1"
        values = {"run": {"seed": 7}, "environment": {"pickled_function": "secret"}}
        run_directory.open_workdir(self._workdir, values, {})
        (self._workdir / "evaluation.json").write_text("{}")

    def _write_rows(self) -> None:
        writer = tensorboard.MetricsWriter(self._workdir / "tensorboard")
        writer.hyperparameters({"run.seed": 7})  # no scalar: not among the rows
        writer.write(100, {"loss/policy": 0.5, "loss/value": math.nan})
        writer.write(200, {"loss/policy": 0.25, "loss/value": 2.0})

    def _send_run(self, service: str, package: mock.Mock) -> int:
        with mock.patch.dict(sys.modules, {service: package}):
            return tracking.send_run(self._workdir, service, "project")

    def test_wandb_gets_configuration_and_rows(self):
        self._write_rows()
        wandb = mock.Mock()
        self.assertEqual(self._send_run("wandb", wandb), 2)
        given = wandb.init.call_args.kwargs
        self.assertEqual(
            (given["project"], given["name"], given["config"]),
            ("project", "pong1", {"run.seed": 7}),
        )
        run = wandb.init.return_value
        self.assertEqual(
            [call.args[0] for call in run.log.call_args_list],
            [
                {"env_frames": 100, "loss/policy": 0.5},
                {"env_frames": 200, "loss/policy": 0.25, "loss/value": 2.0},
            ],
        )
        run.finish.assert_called_once_with()

    def test_mlflow_gets_configuration_rows_and_results(self):
        self._write_rows()
        mlflow = _mlflow()
        self.assertEqual(self._send_run("mlflow", mlflow), 2)
        mlflow.log_params.assert_called_once_with({"run.seed": 7})
        self.assertEqual(
            mlflow.log_metrics.call_args_list,
            [
                mock.call({"loss/policy": 0.5}, step=100),
                mock.call({"loss/policy": 0.25, "loss/value": 2.0}, step=200),
            ],
        )
        mlflow.log_artifact.assert_called_once_with(str(self._workdir / "evaluation.json"))

    def test_second_call_continues_the_wandb_run(self):
        self._write_rows()
        first, second = mock.Mock(), mock.Mock()
        self._send_run("wandb", first)
        writer = tensorboard.MetricsWriter(self._workdir / "tensorboard")
        writer.write(300, {"loss/policy": 0.125})
        self.assertEqual(self._send_run("wandb", second), 1)
        ids = [wandb.init.call_args.kwargs["id"] for wandb in (first, second)]
        self.assertEqual(ids[0], ids[1])
        second.init.return_value.log.assert_called_once_with(
            {"env_frames": 300, "loss/policy": 0.125}
        )

    def test_second_call_continues_the_mlflow_run(self):
        self._write_rows()
        first, second = _mlflow(), _mlflow()
        self._send_run("mlflow", first)
        self.assertEqual(self._send_run("mlflow", second), 0)
        second.start_run.assert_called_once_with(run_id="abc")
        second.log_params.assert_not_called()
        second.log_metrics.assert_not_called()

    def test_late_evaluation_is_sent_by_a_second_call(self):
        self._write_rows()
        first, second = _mlflow(), _mlflow()
        self._send_run("mlflow", first)
        writer = tensorboard.MetricsWriter(self._workdir / "tensorboard")
        writer.write(200, {evaluation_log.RETURN: 19.0})
        self._send_run("mlflow", second)
        second.log_metrics.assert_called_once_with({evaluation_log.RETURN: 19.0}, step=200)

    def test_failed_call_is_continued_with_all_rows(self):
        self._write_rows()
        failure = type("Failure", (Exception,), {})
        first, second = mock.Mock(Error=failure), mock.Mock()
        first.init.return_value.log.side_effect = failure("offline")
        with self.assertRaises(errors.UserError):
            self._send_run("wandb", first)
        self.assertEqual(self._send_run("wandb", second), 2)
        ids = [wandb.init.call_args.kwargs["id"] for wandb in (first, second)]
        self.assertEqual(ids[0], ids[1])

    def test_damaged_tracking_file_is_named(self):
        self._write_rows()
        (self._workdir / experiment_services.FILE).write_text("[")
        with messages.raises(errors.UserError, self._workdir / experiment_services.FILE):
            self._send_run("wandb", mock.Mock())

    def test_error_of_a_service_is_one_line(self):
        self._write_rows()
        failure = type("Failure", (Exception,), {})
        wandb = mock.Mock(Error=failure)
        wandb.init.side_effect = failure("no API key\nconfigured")
        with messages.raises(errors.UserError, "wandb", "no API key configured", "WANDB_MODE"):
            self._send_run("wandb", wandb)
        mlflow = mock.MagicMock(MlflowException=failure)
        mlflow.set_experiment.side_effect = failure("no such server")
        with messages.raises(errors.UserError, "mlflow", "MLFLOW_TRACKING_URI"):
            self._send_run("mlflow", mlflow)

    def test_missing_package_and_metrics_are_named(self):
        with messages.raises(errors.UserError, "--track=wandb", "pip install wandb==0.19.11"):
            self._send_run("wandb", None)  # Python's mark of a module that cannot be imported
        with messages.raises(errors.UserError, self._workdir):
            self._send_run("wandb", mock.Mock(Error=Exception))


if __name__ == "__main__":
    absltest.main()
