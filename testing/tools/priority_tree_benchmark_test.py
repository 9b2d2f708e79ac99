"""What the benchmark of the priority tree writes: each operation's time by the number of keys."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

from absl.testing import absltest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPERATIONS = ("remove one", "insert one", "remove 32 in a row", "insert 32 in a row", "draw",
              "probability", "new priority")  # fmt: skip


class PriorityTreeBenchmarkTest(absltest.TestCase):
    def test_a_row_for_each_number_of_keys_and_a_picture(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        output, picture = (pathlib.Path(folder.name) / f"tree.{kind}" for kind in ("csv", "png"))
        # A process of its own: benchmarks define flags of the same names.
        ended = subprocess.run(
            [sys.executable, "-m", "tools.priority_tree_benchmark", "--keys=100,1000"]
            + ["--repeats=3", f"--output={output}", f"--picture={picture}"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        with output.open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["keys"] for row in rows], ["100", "1000"])
        for row, line in zip(rows, ended.stdout.splitlines(), strict=True):
            self.assertEqual(list(row), ["keys", *OPERATIONS])
            self.assertEqual({name: float(row[name]) for name in row}, json.loads(line))
        self.assertEqual(picture.read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    absltest.main()
