"""Tests of event files: resumed runs, damage, full disks and pages of TensorBoard."""

import math
import pathlib
import re

import imageio.v2 as imageio
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from tensorboard.backend.event_processing import (
    event_accumulator,
    plugin_event_accumulator,
    plugin_event_multiplexer,
)
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as custom_scalar_metadata
from tensorboard.plugins.hparams import plugin_data_pb2

from laser_tf.monitoring import evaluation_log, tensorboard
from testing import folders, messages, processes

NAME = "loss/policy"


class MetricsTest(folders.FolderTest):
    def _accumulator(self) -> event_accumulator.EventAccumulator:
        return event_accumulator.EventAccumulator(str(self._folder)).Reload()

    def _write(self, *steps: int) -> pathlib.Path:
        """Writes one session; returns its file."""
        before = set(self._folder.iterdir())
        writer = tensorboard.MetricsWriter(self._folder)
        writer.hyperparameters({"discount": 0.99})
        for step in steps:
            writer.write(step, {NAME: float(step)})
        (path,) = set(self._folder.iterdir()) - before
        return path

    def _steps(self) -> list[int]:
        """Steps of all rows, whose values are equal to them."""
        steps, values = tensorboard.read_scalars(self._folder, NAME)
        np.testing.assert_array_equal(steps, values)
        return list(steps)

    def test_tensorboard_drops_rows_beyond_the_checkpoint(self):
        self._write(100, 200, 300)
        self._write(200, 250, 350)
        # What TensorBoard's pages read with; the public accumulator forgets no scalars.
        pages = plugin_event_accumulator.EventAccumulator(str(self._folder)).Reload()
        events = pages.Tensors(NAME)
        self.assertEqual([event.step for event in events], [100, 200, 250, 350])

    @parameterized.parameters(
        ([[100, 200], []], [100, 200]),
        ([range(2_000)], list(range(2_000))),  # TensorBoard itself drops some.
        ([[100, 200, 300], [250, 350]], [100, 200, 250, 350]),
        ([[100, 200, 300], [200, 250, 350], [340]], [100, 200, 250, 340]),
    )
    def test_later_session_replaces_rows(self, sessions, expected):
        for steps in sessions:
            self._write(*steps)
        self.assertEqual(self._steps(), expected)

    def test_later_file_has_the_later_name_if_the_clock_goes_back(self):
        path = self._write(100, 200)
        path.rename(self._folder / "events.out.tfevents.4000000000.host.1.0.v2")
        self._write(150)
        self.assertEqual(self._steps(), [100, 150])
        pages = plugin_event_accumulator.EventAccumulator(str(self._folder)).Reload()
        self.assertEqual([event.step for event in pages.Tensors(NAME)], [100, 150])

    def _row_offset(self, path: pathlib.Path, step: int) -> int:
        """Returns the offset of the record of a row."""
        offset = 0
        for record in tf.data.TFRecordDataset([str(path)]).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            if event.step == step and event.HasField("summary"):
                return offset
            offset += len(record) + 16
        raise AssertionError(step)

    @parameterized.parameters(0, 9, 20)
    def test_damaged_record_ends_its_file_with_one_warning(self, byte):
        path = self._write(100, 200, 300)
        content = bytearray(path.read_bytes())
        content[self._row_offset(path, 200) + byte] ^= 64
        path.write_bytes(content)
        self._write(400)
        with messages.warns(path):
            self.assertEqual(self._steps(), [100, 400])

    @parameterized.parameters(5, 14, 30)
    def test_truncated_record_costs_one_row(self, size):
        path = self._write(100, 200, 300)
        path.write_bytes(path.read_bytes()[: self._row_offset(path, 300) + size])
        self._write(400)
        self.assertEqual(self._steps(), [100, 200, 400])

    @parameterized.parameters(True, False)
    def test_file_that_is_no_event_file_is_skipped(self, is_directory):
        foreign = self._folder / "events.out.tfevents.0000000005"
        self._write(100)
        if is_directory:
            foreign.mkdir()
        else:
            foreign.write_bytes(bytes(range(256)) * 100)
        self._write(200)
        with messages.warns(foreign):
            self.assertEqual(self._steps(), [100, 200])

    def test_hyperparameters_of_any_type_are_written(self):
        writer = tensorboard.MetricsWriter(self._folder)
        given = {"discount": 0.99, "channels": (16, 32), "clip": None, "debug": True}
        writer.hyperparameters(given)
        metadata = self._accumulator().SummaryMetadata("_hparams_/session_start_info")
        data = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
        values = {
            key: getattr(value, value.WhichOneof("kind"))
            for key, value in data.session_start_info.hparams.items()
        }
        self.assertEqual(values, given | {"channels": "(16, 32)", "clip": "None"})

    def test_trial_has_the_name_of_the_run(self):
        for name in ("sweep/member_00", "other/member_00"):
            folder = self._folder / name / "tensorboard"
            writer = tensorboard.MetricsWriter(folder)
            writer.hyperparameters({"discount": 0.99})
            found = event_accumulator.EventAccumulator(str(folder)).Reload()
            metadata = found.SummaryMetadata("_hparams_/session_start_info")
            data = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
            self.assertEqual(data.session_start_info.group_name, name)

    def test_columns_of_a_sweep_identify_and_rank_its_members(self):
        writer = tensorboard.MetricsWriter(self._folder)
        writer.write_sweep_columns({"member_00": {"learner.learning_rate": 1e-3, "run.seed": 2}})
        metadata = self._accumulator().SummaryMetadata("_hparams_/experiment")
        data = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
        self.assertEqual(
            [info.name for info in data.experiment.hparam_infos],
            ["environment.task", "agent.name", "run.seed", "learner.learning_rate"],
        )
        self.assertEqual(
            [info.name.tag for info in data.experiment.metric_infos],
            [tensorboard.FINAL_RETURN, tensorboard.RETURN],
        )

    def test_config_is_a_table_of_text(self):
        writer = tensorboard.MetricsWriter(self._folder)
        writer.hyperparameters({"agent.discount": 0.99, "agent.torso": "a|b", "x.y": ""})
        (event,) = self._accumulator().Tensors("config")
        self.assertEqual(
            event.tensor_proto.string_val[0].decode().splitlines(),
            ["| key | value |", "|---|---|", "| agent.discount | `0.99` |",
             "| agent.torso | `a\\|b` |", "| x.y | ` ` |"],
        )  # fmt: skip

    def test_returns_of_training_and_evaluation_share_a_chart(self):
        writer = tensorboard.MetricsWriter(self._folder)
        writer.write(100, {tensorboard.RETURN: 1.0})
        writer.chart_returns()
        writer.write(50, {evaluation_log.RETURN: 2.0})
        found = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(self._folder))
        found.Reload()
        (event,) = found.Tensors(".", custom_scalar_metadata.CONFIG_SUMMARY_TAG)
        layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
        patterns = layout.category[0].chart[0].multiline.tag
        tags = found.GetAccumulator(".").Tags()["tensors"]
        self.assertEqual(
            [[tag for tag in tags if re.search(pattern, tag)] for pattern in patterns],
            [[tensorboard.RETURN], [], [evaluation_log.RETURN]],
        )

    def test_evaluation_while_the_run_trains_hides_no_row(self):
        writer = tensorboard.MetricsWriter(self._folder)
        pages = plugin_event_accumulator.EventAccumulator(str(self._folder))
        for step in (100, 200, 300):
            writer.write(step, {NAME: float(step)})
            pages.Reload()
            if step < 300:
                tensorboard.MetricsWriter(self._folder).write_final_return(step, 7.0)
        self.assertEqual([event.step for event in pages.Tensors(NAME)], [100, 200, 300])
        final = pages.Tensors(tensorboard.FINAL_RETURN)
        self.assertEqual([event.step for event in final], [100, 200])
        self.assertEqual(self._steps(), [100, 200, 300])

    def test_row_of_earlier_frames_drops_no_row(self):
        writer = tensorboard.MetricsWriter(self._folder)
        for step in (100, 200, 300):
            writer.write(step, {NAME: float(step)})
        writer.write(150, {evaluation_log.RETURN: 1.0})
        writer.write(400, {NAME: 400.0})
        pages = plugin_event_accumulator.EventAccumulator(str(self._folder)).Reload()
        steps = [event.step for event in pages.Tensors(NAME)]
        self.assertEqual(steps, [100, 200, 300, 400])

    def test_video_is_a_gif_and_keeps_the_curves(self):
        pictures = [np.full((6, 4, 3), 40 * k, np.uint8) for k in range(3)]
        gif = imageio.mimwrite(imageio.RETURN_BYTES, pictures, format="GIF")
        self._write(100, 200)
        writer = tensorboard.MetricsWriter(self._folder)
        writer.write_final_return(200, 7.0)
        writer.write_video(200, "evaluation/median_episode", gif)
        self.assertEqual(self._steps(), [100, 200])
        found = plugin_event_accumulator.EventAccumulator(str(self._folder)).Reload()
        self.assertEqual([event.step for event in found.Tensors(NAME)], [100, 200])
        (event,) = found.Tensors(tensorboard.FINAL_RETURN)
        self.assertEqual((event.step, tf.make_ndarray(event.tensor_proto)), (200, 7.0))
        (event,) = found.Tensors("evaluation/median_episode")
        self.assertEqual(event.step, 200)
        self.assertEqual(tf.make_ndarray(event.tensor_proto).tolist(), [b"4", b"6", gif])
        metadata = found.SummaryMetadata("evaluation/median_episode")
        self.assertEqual(metadata.plugin_data.plugin_name, "images")

    def test_written_scalars_are_read_without_nan(self):
        writer = tensorboard.MetricsWriter(self._folder)
        writer.hyperparameters({"agent.discount": 0.99, "environment.task": "pong"})
        writer.write(100, {"loss/policy": 1.5, "episode/mean_return_last_100": math.nan})
        writer.write(200, {"loss/policy": 0.5, "episode/mean_return_last_100": -20.0})
        steps, values = tensorboard.read_scalars(self._folder, "loss/policy")
        np.testing.assert_array_equal(steps, [100, 200])
        np.testing.assert_array_equal(values, [1.5, 0.5])
        steps, _ = tensorboard.read_scalars(self._folder, "episode/mean_return_last_100")
        np.testing.assert_array_equal(steps, [200])

    def test_full_disk_costs_rows_and_is_logged_once(self):
        writer = tensorboard.MetricsWriter(self._folder)
        writer.write(1, {NAME: 1.0})
        (path,) = self._folder.iterdir()
        with (
            processes.full_disk(path.stat().st_size + 50),
            messages.warns(self._folder.parent, "File too large"),
        ):
            for step in (2, 3, 4):
                writer.write(step, {NAME: float(step)})
        with self.assertLogs(level="INFO") as logs:
            writer.write(5, {NAME: 5.0})
        messages.assert_names(logs.output[0], self._folder)
        self.assertEqual(self._steps(), [1, 5])

    def test_full_disk_at_the_start_leaves_no_file(self):
        writer = tensorboard.MetricsWriter(self._folder)
        with processes.full_disk(0), self.assertLogs(level="WARNING"):
            writer.write(1, {NAME: 1.0})
        self.assertEmpty(list(self._folder.iterdir()))
        writer.write(2, {NAME: 2.0})
        self.assertEqual(self._steps(), [2])

    def test_missing_metric_is_empty(self):
        writer = tensorboard.MetricsWriter(self._folder)
        writer.write(1, {"loss/policy": 1.0})
        steps, values = tensorboard.read_scalars(self._folder, "loss/polcy")
        self.assertEmpty(steps)
        self.assertEmpty(values)
        self.assertEmpty(tensorboard.read_rows(self._folder / "none"))


if __name__ == "__main__":
    absltest.main()
