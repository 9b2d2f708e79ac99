"""The record of a population: format, atomic writes, and damage."""

import dataclasses
import math
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.sweeps import lineage, population
from laser_tf.workdir import atomic
from testing import folders, messages

TUNED = ("learner.learning_rate", "agent.entropy_cost")
START = lineage.Record(0, "member-1", None, math.nan, dict(zip(TUNED, (6e-4, 0.01), strict=True)))
LATER = lineage.Record(
    1_000_003, "member, 2", "member-1", -0.1 / 3, dict(zip(TUNED, (5e-4 / 1.2, 1e-7), strict=True))
)


class LineageTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._path = self._folder / "population/lineage.csv"

    def _written(self, *records: lineage.Record) -> bytes:
        lineage.write(self._path, records)
        return self._path.read_bytes()

    def _assert_reads(self, *records: lineage.Record) -> None:
        read = lineage.read(self._path, TUNED)
        # NaN is not equal to itself.
        self.assertEqual([repr(record) for record in read], [repr(record) for record in records])

    def test_file_has_columns_and_rows(self):
        content = self._written(START, dataclasses.replace(START, member="b", fitness=0.5))
        self.assertEqual(
            content.decode().splitlines(),
            [
                "env_frames,member,parent,fitness,learner.learning_rate,agent.entropy_cost",
                "0,member-1,,,0.0006,0.01",
                "0,b,,0.5,0.0006,0.01",
            ],
        )

    def test_records_are_read_exactly_as_written(self):
        self._written(START, LATER)
        self._assert_reads(START, LATER)

    def test_header_that_is_not_text_is_rejected(self):
        self._written(START)
        self._path.write_bytes(b"\xff\xfe" + self._path.read_bytes())
        with messages.raises(errors.ConfigError, self._path):
            lineage.read(self._path, TUNED)

    def test_failed_write_keeps_the_file_and_the_records(self):
        before = self._written(START)
        config = population.Config(method="pbt", tuned=TUNED)
        log = population.Population(config, self._path)
        with mock.patch.object(atomic, "replace", side_effect=OSError), self.assertRaises(OSError):
            log.record(LATER)
        self.assertEqual((self._path.read_bytes(), len(log.records)), (before, 1))

    @parameterized.parameters(
        "x,member-1,,,0.1,0.1",
        "0,member-1,,,0.1",
        "0,member-1,,",
        "0,member-1,,,0.1,0.1,0.1",
        "0,,,,0.1,0.1",
        "0,member-1,,,nan,0.1",
        "0,member-1,,,0.1,-0.1",
        "0,member-1,,high,0.1,0.1",
        '0,"member-1,,,0.1,0.1',
        "",
    )
    def test_damage_is_named_by_its_line(self, line):
        whole = self._written(START).decode() + line + "\n" + "0,member-2,,,0.1,0.1\n"
        self._path.write_text(whole)
        with messages.raises(ValueError, 3, "lineage.csv"):
            lineage.read(self._path, TUNED)
        self.assertEqual(self._path.read_text(), whole)

    def test_file_with_other_hyperparameters_is_rejected(self):
        self._written(START)
        with messages.raises(ValueError, "agent.entropy_cost"):
            lineage.read(self._path, TUNED[:1])


if __name__ == "__main__":
    absltest.main()
