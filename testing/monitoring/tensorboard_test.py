"""Curves of a resumed run never step back, for TensorBoard and for pictures."""

import math
import pathlib
import re
import resource
import tempfile
from unittest import mock

import imageio.v2 as imageio
import numpy as np
import tensorflow as tf
from absl.testing import absltest
from tensorboard.backend.event_processing import (
    event_accumulator,
    plugin_event_accumulator,
    plugin_event_multiplexer,
)
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as custom_scalar_metadata
from tensorboard.plugins.hparams import plugin_data_pb2

from laser_tf.monitoring import tensorboard

NAME = "loss/policy"


class MetricsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)

    def _accumulator(self) -> event_accumulator.EventAccumulator:
        return event_accumulator.EventAccumulator(str(self._folder)).Reload()

    def _write(self, *steps: int) -> None:
        with tensorboard.MetricsWriter(self._folder) as writer:
            writer.hyperparameters({"discount": 0.99})
            for step in steps:
                writer.write(step, {NAME: float(step)})
        self._close_session()

    def _close_session(self) -> None:
        """Puts the newest file behind the others, as the clock does for sessions of real runs.

        Within a second TensorFlow's file names count up without leading zeros: 9, 10.
        """
        (newest,) = self._folder.glob("events*")
        newest.rename(self._folder / f"tfevents.{len(list(self._folder.iterdir())):03d}")

    def test_tensorboard_forgets_what_a_crashed_run_had_beyond_its_checkpoint(self):
        self._write(100, 200, 300)
        self._write(200, 250, 350)
        # What TensorBoard's pages read with; the public accumulator forgets no scalars.
        pages = plugin_event_accumulator.EventAccumulator(str(self._folder)).Reload()
        events = pages.Tensors(NAME)
        self.assertEqual([event.step for event in events], [100, 200, 250, 350])

    def test_a_resumed_run_without_rows_leaves_the_curves_alone(self):
        self._write(100, 200)
        self._write()
        steps, _ = tensorboard.read_scalars(self._folder, NAME)
        np.testing.assert_array_equal(steps, [100, 200])

    def test_pictures_agree_where_no_session_start_was_written(self):
        for k, steps in enumerate(([100, 200, 300], [200, 250, 350], [340])):
            with tf.summary.create_file_writer(str(self._folder)).as_default():
                for step in steps:
                    tf.summary.scalar(NAME, 1000 * k + step, step=step)
            self._close_session()
        steps, values = tensorboard.read_scalars(self._folder, NAME)
        np.testing.assert_array_equal(steps, [100, 200, 250, 340])
        np.testing.assert_array_equal(values, [100, 1200, 1250, 2340])

    def test_every_row_is_read(self):
        self._write(*range(2_000))  # TensorBoard itself thins them
        steps, values = tensorboard.read_scalars(self._folder, NAME)
        np.testing.assert_array_equal(steps, np.arange(2_000))
        np.testing.assert_array_equal(values, np.arange(2_000))

    def test_hyperparameters_of_any_type_reach_their_page(self):
        with tensorboard.MetricsWriter(self._folder) as writer:
            writer.hyperparameters(
                {
                    "discount": 0.99,
                    "channels": (16, 32),
                    "clip": None,
                    "debug": True,
                    "task": "pong",
                }
            )
        metadata = self._accumulator().SummaryMetadata("_hparams_/session_start_info")
        data = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
        values = {
            key: getattr(value, value.WhichOneof("kind"))
            for key, value in data.session_start_info.hparams.items()
        }
        self.assertEqual(
            values,
            {
                "discount": 0.99,
                "channels": "(16, 32)",
                "clip": "None",
                "debug": True,
                "task": "pong",
            },
        )

    def test_a_trial_bears_its_runs_name(self):
        for name in ("sweep/member_00", "other/member_00"):
            folder = self._folder / name / "tensorboard"
            with tensorboard.MetricsWriter(folder) as writer:
                writer.hyperparameters({"discount": 0.99})
            found = event_accumulator.EventAccumulator(str(folder)).Reload()
            metadata = found.SummaryMetadata("_hparams_/session_start_info")
            data = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
            self.assertEqual(data.session_start_info.group_name, name)

    def test_the_config_is_a_table_of_text(self):
        with tensorboard.MetricsWriter(self._folder) as writer:
            writer.hyperparameters({"agent.discount": 0.99, "agent.torso": "a|b", "x.y": ""})
        (event,) = self._accumulator().Tensors("config")
        self.assertEqual(
            event.tensor_proto.string_val[0].decode().splitlines(),
            ["| key | value |", "|---|---|", "| agent.discount | `0.99` |",
             "| agent.torso | `a\\|b` |", "| x.y | ` ` |"],
        )  # fmt: skip

    def test_returns_of_training_and_of_evaluations_share_a_chart(self):
        with tensorboard.MetricsWriter(self._folder) as writer:
            writer.write(100, {tensorboard.RETURN: 1.0})
            writer.chart_returns()
            writer.write(50, {tensorboard.EVALUATION_RETURN: 2.0})
        found = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(self._folder))
        found.Reload()
        (event,) = found.Tensors(".", custom_scalar_metadata.CONFIG_SUMMARY_TAG)
        layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
        (pattern, other) = layout.category[0].chart[0].multiline.tag
        tags = found.GetAccumulator(".").Tags()["tensors"]
        self.assertEqual([t for t in tags if re.search(pattern, t)], [tensorboard.RETURN])
        self.assertEqual([t for t in tags if re.search(other, t)], [tensorboard.EVALUATION_RETURN])

    def test_a_row_of_earlier_frames_takes_none_away(self):
        with tensorboard.MetricsWriter(self._folder) as writer:
            for step in (100, 200, 300):
                writer.write(step, {NAME: float(step)})
            with (
                mock.patch.object(tf.summary, "create_file_writer", side_effect=OSError("full")),
                mock.patch.object(writer, "_writer", None),
                self.assertLogs(level="WARNING"),
            ):
                writer.write(310, {NAME: 310.0})
            writer._writer = None  # as after any failure: the next row begins another file
            writer.write(150, {tensorboard.EVALUATION_RETURN: 1.0})
            writer.write(400, {NAME: 400.0})
        pages = plugin_event_accumulator.EventAccumulator(str(self._folder)).Reload()
        steps = [event.step for event in pages.Tensors(NAME)]
        self.assertEqual(steps, [100, 200, 300, 400])

    def test_a_film_is_a_moving_picture_and_leaves_the_curves_alone(self):
        pictures = [np.full((6, 4, 3), 40 * k, np.uint8) for k in range(3)]
        gif = imageio.mimwrite(imageio.RETURN_BYTES, pictures, format="GIF")
        self._write(100, 200)
        tensorboard.write_film(self._folder / "evaluation", 150, "evaluation/median_episode", gif)
        steps, _ = tensorboard.read_scalars(self._folder, NAME)
        np.testing.assert_array_equal(steps, [100, 200])
        folder = str(self._folder / "evaluation")
        found = event_accumulator.EventAccumulator(folder).Reload()
        (event,) = found.Tensors("evaluation/median_episode")
        self.assertEqual(event.step, 150)
        self.assertEqual(tf.make_ndarray(event.tensor_proto).tolist(), [b"4", b"6", gif])
        metadata = found.SummaryMetadata("evaluation/median_episode")
        self.assertEqual(metadata.plugin_data.plugin_name, "images")

    def test_reads_back_what_was_written_and_leaves_out_nan(self):
        with tensorboard.MetricsWriter(self._folder) as writer:
            writer.hyperparameters({"agent.discount": 0.99, "environment.task": "pong"})
            writer.write(100, {"loss/policy": 1.5, "episode/mean_return_last_100": math.nan})
            writer.write(200, {"loss/policy": 0.5, "episode/mean_return_last_100": -20.0})
        steps, values = tensorboard.read_scalars(self._folder, "loss/policy")
        np.testing.assert_array_equal(steps, [100, 200])
        np.testing.assert_array_equal(values, [1.5, 0.5])
        steps, _ = tensorboard.read_scalars(self._folder, "episode/mean_return_last_100")
        np.testing.assert_array_equal(steps, [200])

    def _put_first(self) -> pathlib.Path:
        """Puts the only file before the ones to come, as `_close_session` does; returns it."""
        (first,) = self._folder.iterdir()
        return first.rename(self._folder / "events.0.tfevents")

    def test_a_full_disk_costs_the_rows_that_it_took_and_no_others(self):
        def write(writer: tensorboard.MetricsWriter, *steps: int) -> None:
            for step in steps:
                writer.write(step, {f"{NAME}{k}": float(step) for k in range(20)})

        with tensorboard.MetricsWriter(self._folder) as writer:
            write(writer, 1, 2, 3)
            path = self._put_first()
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            # Ends within the next row, as a full disk does.
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 500, limits[1]))
            try:
                with self.assertLogs(level="WARNING") as logs:
                    write(writer, 4)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertRegex(logs.output[0], f"{self._folder.parent} has a gap: .*File too large")
            write(writer, 5, 6)
        steps, _ = tensorboard.read_scalars(self._folder, f"{NAME}19")
        np.testing.assert_array_equal(steps, [1, 2, 3, 5, 6])

    def test_a_disk_that_stays_full_is_told_once_and_leaves_no_empty_files(self):
        with tensorboard.MetricsWriter(self._folder) as writer:
            writer.write(1, {NAME: 1.0})
            self._put_first()
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
            try:
                with self.assertLogs(level="WARNING") as logs:
                    for step in range(2, 6):
                        writer.write(step, {NAME: float(step)})
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertLen(logs.output, 1)
            self.assertLen(list(self._folder.iterdir()), 1)
            with self.assertLogs(level="INFO") as logs:
                writer.write(6, {NAME: 6.0})
            self.assertRegex(logs.output[0], "rows reach .* again")
        steps, _ = tensorboard.read_scalars(self._folder, NAME)
        np.testing.assert_array_equal(steps, [1, 6])

    def test_a_folder_that_cannot_be_written_is_told(self):
        path = self._folder / "tensorboard"
        path.write_text("a file, not a folder")
        with self.assertLogs(level="WARNING"):
            tensorboard.write_sweep_columns(path, {"member_00": {"run.seed": 1}})
        with self.assertLogs(level="WARNING"), tensorboard.MetricsWriter(path) as writer:
            writer.write(1, {NAME: 1.0})

    def test_frames_that_were_run_twice_count_once(self):
        for steps in ([100, 200, 300], [250, 350]):
            with tensorboard.MetricsWriter(self._folder) as writer:
                for step in steps:
                    writer.write(step, {"loss/policy": float(step)})
        steps, _ = tensorboard.read_scalars(self._folder, "loss/policy")
        np.testing.assert_array_equal(steps, [100, 200, 250, 350])

    def test_a_missing_metric_is_empty(self):
        with tensorboard.MetricsWriter(self._folder) as writer:
            writer.write(1, {"loss/policy": 1.0})
        steps, values = tensorboard.read_scalars(self._folder, "loss/polcy")
        self.assertEmpty(steps)
        self.assertEmpty(values)


if __name__ == "__main__":
    absltest.main()
