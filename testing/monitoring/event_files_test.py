"""Event files: damage costs only the damaged records, and the order does not follow the clock."""

import pathlib
import tempfile

import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.monitoring import event_files, tensorboard

NAME = "loss/policy"


class EventFilesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def _write(self, name: str, *steps: int) -> pathlib.Path:
        """Writes one session into a file of this name."""
        before = set(self._folder.iterdir())
        with tensorboard.MetricsWriter(self._folder) as writer:
            for step in steps:
                writer.write(step, {NAME: float(step)})
        (path,) = set(self._folder.iterdir()) - before
        return path.rename(self._folder / f"events.out.tfevents.{name}.host.1.0.v2")

    def _steps(self) -> list[int]:
        steps, values = tensorboard.read_scalars(self._folder, NAME)
        self.assertEqual(list(steps), list(values))
        return list(steps)

    def _find_record(self, path: pathlib.Path, step: int) -> int:
        """Returns the offset of the record of a step."""
        records = list(tf.data.TFRecordDataset([str(path)]).as_numpy_iterator())
        found = [
            index
            for index, record in enumerate(records)
            if (event := tf.compat.v1.Event.FromString(record)).step == step
            and event.HasField("summary")
        ]
        return sum(len(record) + 16 for record in records[: found[0]])

    @parameterized.named_parameters(
        ("length", 0), ("checksum_of_length", 9), ("content", 20), ("large_length", 7)
    )
    def test_flipped_bit_costs_one_record_with_one_warning(self, byte):
        path = self._write("1000", 100, 200, 300, 400)
        content = bytearray(path.read_bytes())
        content[self._find_record(path, 200) + byte] ^= 64
        path.write_bytes(content)
        self._write("2000", 500)
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self._steps(), [100, 300, 400, 500])
        self.assertLen(logs.output, 1)
        self.assertIn(str(path), logs.output[0])

    def test_two_damaged_records_cost_only_themselves(self):
        path = self._write("1000", 100, 200, 300, 400)
        content = bytearray(path.read_bytes())
        for step in (200, 300):
            content[self._find_record(path, step) + 20] ^= 1
        path.write_bytes(content)
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self._steps(), [100, 400])
        self.assertLen(logs.output, 1)

    @parameterized.parameters(5, 14, 30)
    def test_truncated_record_is_skipped_with_a_warning(self, size):
        path = self._write("1000", 100, 200, 300)
        path.write_bytes(path.read_bytes()[: self._find_record(path, 300) + size])
        self._write("2000", 400)
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self._steps(), [100, 200, 400])
        self.assertLen(logs.output, 1)

    def test_file_that_is_no_event_file_is_skipped(self):
        self._write("1000", 100)
        foreign = self._folder / "events.out.tfevents.1500"
        foreign.write_bytes(bytes(range(256)) * 100)
        self._write("2000", 200)
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self._steps(), [100, 200])
        self.assertLen(logs.output, 1)
        self.assertIn(str(foreign), logs.output[0])

    def test_record_that_is_no_event_is_skipped(self):
        path = self._write("1000", 100)
        with tf.io.TFRecordWriter(str(self._folder / "tfevents.foreign")) as writer:
            writer.write(b"\xff\xff no event")
        content = path.read_bytes() + (self._folder / "tfevents.foreign").read_bytes()
        (self._folder / "tfevents.foreign").unlink()
        path.write_bytes(content)
        with self.assertLogs(level="WARNING"):
            self.assertEqual(self._steps(), [100])

    def test_unreadable_file_is_skipped_with_a_warning(self):
        self._write("1000", 100)
        unreadable = self._folder / "events.out.tfevents.1500"
        unreadable.mkdir()
        self._write("2000", 200)
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self._steps(), [100, 200])
        self.assertLen(logs.output, 1)
        self.assertIn(str(unreadable), logs.output[0])

    def test_undamaged_files_give_no_warning(self):
        self._write("1000", 100, 200)
        with self.assertNoLogs(level="WARNING"):
            self.assertEqual(self._steps(), [100, 200])

    def test_session_after_the_clock_went_back_keeps_all_rows(self):
        self._write("2000", 100, 200, 300)
        self._write("1000", 400, 500)
        self._write("1500", 600)
        self.assertEqual(self._steps(), [100, 200, 300, 400, 500, 600])

    def test_later_session_replaces_rows_though_its_clock_is_behind(self):
        self._write("2000", 100, 200, 300)
        path = self._write("1000", 150, 350)
        self.assertEqual(self._steps(), [100, 150, 350])
        path.unlink()
        self.assertEqual(self._steps(), [100, 200, 300])

    def test_file_whose_number_is_damaged_is_ordered_by_name(self):
        self._write("1000", 100, 200)
        path = self._write("2000", 300)
        offset = path.read_bytes().index(b"event file 1")
        content = bytearray(path.read_bytes())
        content[offset] ^= 1
        path.write_bytes(content)
        with self.assertLogs(level="WARNING"):
            self.assertEqual(self._steps(), [100, 200, 300])

    def test_text_is_no_scalar(self):
        with tensorboard.MetricsWriter(self._folder) as writer:
            writer.hyperparameters({"discount": 0.99})
            writer.write(100, {NAME: 1.0})
        self.assertEqual(event_files.read_scalars(self._folder), {NAME: [(100, 1.0)]})

    def test_missing_folder_has_no_scalars(self):
        self.assertEmpty(event_files.read_scalars(self._folder / "none"))


if __name__ == "__main__":
    absltest.main()
