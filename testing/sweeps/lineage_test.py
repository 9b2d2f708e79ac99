"""A population's record: what is written, read back, repaired and refused."""

import dataclasses
import math
import pathlib
import tempfile

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.sweeps import lineage
from testing import messages

TUNED = ("learner.learning_rate", "agent.entropy_cost")
START = lineage.Record(0, "member-1", None, math.nan, dict(zip(TUNED, (6e-4, 0.01), strict=True)))
LATER = lineage.Record(
    1_000_003, "member, 2", "member-1", -0.1 / 3, dict(zip(TUNED, (5e-4 / 1.2, 1e-7), strict=True))
)


class LineageTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._path = pathlib.Path(folder.name) / "population/lineage.csv"

    def _written(self, *records: lineage.Record) -> bytes:
        log = lineage.Lineage(self._path, TUNED)
        for record in records:
            log.append(record)
        return self._path.read_bytes()

    def _assert_reads(self, *records: lineage.Record) -> None:
        read = lineage.Lineage(self._path, TUNED).records
        # NaN is not equal to itself.
        self.assertEqual([repr(record) for record in read], [repr(record) for record in records])

    def test_the_columns_and_rows(self):
        content = self._written(START, dataclasses.replace(START, member="b", fitness=0.5))
        self.assertEqual(
            content.decode().splitlines(),
            [
                "env_frames,member,parent,fitness,learner.learning_rate,agent.entropy_cost",
                "0,member-1,,,0.0006,0.01",
                "0,b,,0.5,0.0006,0.01",
            ],
        )

    def test_reads_back_exactly_what_was_written(self):
        self._written(START, LATER)
        self._assert_reads(START, LATER)

    def test_header_that_is_not_text_is_rejected(self):
        self._written(START)
        self._path.write_bytes(b"\xff\xfe" + self._path.read_bytes())
        with messages.raises(errors.ConfigError, self._path):
            lineage.Lineage(self._path, TUNED)

    def test_who_only_reads_changes_nothing(self):
        self.assertEmpty(lineage.read(self._path))
        whole = self._written(START, LATER)
        torn = whole + b"2000000,member"
        self._path.write_bytes(torn)
        records = lineage.read(self._path)
        self.assertEqual([repr(record) for record in records], [repr(START), repr(LATER)])
        self.assertEqual(self._path.read_bytes(), torn)
        self._path.write_bytes(b"env_frames,member\n1,a\n")
        with messages.raises(ValueError, 2, self._path):
            lineage.read(self._path)

    def test_each_row_is_on_disk_at_once(self):
        log = lineage.Lineage(self._path, TUNED)
        for count in (1, 2):
            log.append(START)
            self.assertLen(self._path.read_text().splitlines(), 1 + count)

    def test_any_torn_end_costs_its_row_only_and_the_next_row_is_whole(self):
        whole = self._written(START, LATER)
        ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
        for size in range(len(whole)):
            self._path.write_bytes(whole[:size])
            complete = sum(end <= size for end in ends)
            self._assert_reads(*(START, LATER)[: max(0, complete - 1)])
            lineage.Lineage(self._path, TUNED).append(LATER)
            self._assert_reads(*(START, LATER)[: max(0, complete - 1)], LATER)

    def test_a_torn_end_is_reported(self):
        whole = self._written(START)
        self._path.write_bytes(whole + b"12,member-1,\0\0\0")
        with self.assertLogs(level="WARNING") as logs:
            self._assert_reads(START)
        messages.assert_names(logs.output[0], "lineage.csv")
        self.assertEqual(self._path.read_bytes(), whole)

    def test_a_row_that_failed_halfway_does_not_spoil_the_next(self):
        log = lineage.Lineage(self._path, TUNED)
        with self._path.open("ab") as file:
            file.write(b"0,member-1,,")
        log.append(START)
        self._assert_reads(START)

    @parameterized.parameters(
        "x,member-1,,,0.1,0.1",
        "0,member-1,,,0.1",
        "0,member-1,,,0.1,0.1,0.1",
        "0,,,,0.1,0.1",
        "0,member-1,,,nan,0.1",
        "0,member-1,,,0.1,-0.1",
        "0,member-1,,high,0.1,0.1",
        '0,"member-1,,,0.1,0.1',
        "",
    )
    def test_damage_before_the_end_is_named_by_its_line(self, line):
        whole = self._written(START).decode() + line + "\n" + "0,member-2,,,0.1,0.1\n"
        self._path.write_text(whole)
        with messages.raises(ValueError, 3, "lineage.csv"):
            lineage.Lineage(self._path, TUNED)
        self.assertEqual(self._path.read_text(), whole)

    def test_a_record_of_other_hyperparameters_is_refused(self):
        self._written(START)
        with messages.raises(ValueError, "agent.entropy_cost"):
            lineage.Lineage(self._path, TUNED[:1])


if __name__ == "__main__":
    absltest.main()
