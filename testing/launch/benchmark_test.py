"""launch.benchmark measures a run and every part, and prints or appends their costs."""

import csv
import json
import pathlib
import tempfile

from absl.testing import absltest

from testing import commands


class BenchmarkTest(absltest.TestCase):
    def test_costs_of_a_run_and_of_its_parts(self):
        folder = self.enter_context(tempfile.TemporaryDirectory())
        output = pathlib.Path(folder, "costs.csv")
        code, printed, errors = commands.run_forked(
            "benchmark", "--config=configs/laser.py:catch",
            "--config.replay.scheme=episodes", "--seconds=1", "--part_seconds=0.1", "--json",
            f"--output={output}",
        )  # fmt: skip
        self.assertEqual(code, 0, errors)
        measured = json.loads(printed)
        parts = {
            "environment", "inference", "writing", "sampling", "update", "recomputing states",
        }  # fmt: skip
        rows = {row["part"]: row for row in measured["rows"]}
        self.assertEqual(set(rows), parts | {"bound", "end to end"})
        for row in rows.values():
            self.assertGreater(row["agent_steps_per_second"], 0)
            self.assertGreater(row["processor_us_per_agent_step"], 0)
        run = measured["end_to_end"]
        # The batch of 16 unrolls of 10 agent steps has 4 new ones.
        self.assertAlmostEqual(run["agent_steps"] / run["learner_updates"], 40, delta=0.1)
        busy_cores = run["processor_seconds"] / run["seconds"]
        self.assertBetween(busy_cores, 0.01, rows["bound"]["cores"] + 0.1)
        self.assertEqual(measured["calls"]["update"]["sizes"], [16, 64])
        with output.open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(parts) + 2)
        self.assertEqual(
            rows[0]["configuration"],
            "configs/laser.py:catch replay.scheme=episodes",
        )


if __name__ == "__main__":
    absltest.main()
