"""launch.benchmark measures a run and every part, and prints or appends their costs."""

import csv
import json

from absl.testing import absltest

from testing import commands, folders


class BenchmarkTest(folders.FolderTest):
    def test_run_and_parts_have_costs(self):
        output = self._folder / "costs.csv"
        code, printed, errors = commands.run_forked(
            "benchmark", "--config=configs/laser.py:catch",
            "--config.replay.scheme=episodes", "--seconds=1", "--part_seconds=0.1", "--json",
            f"--output={output}",
        )  # fmt: skip
        self.assertEqual(code, 0, errors)
        measured = json.loads(printed)
        parts = {
            "environment", "inference", "writing", "sampling", "update", "recomputing_states",
        }  # fmt: skip
        for key in ("agent_steps_per_second_alone", "processor_us_per_agent_step"):
            self.assertEqual(set(measured[key]), parts)
            for value in measured[key].values():
                self.assertGreater(value, 0)
        run = measured["end_to_end"]
        # The batch of 16 unrolls of 10 agent steps has 4 new ones.
        steps, updates = run["agent_steps_per_second"], run["learner_updates_per_second"]
        self.assertAlmostEqual(steps / updates, 40, delta=0.1)
        steps = measured["agent_steps_per_second_alone"]["update"]
        updates = measured["learner_updates_per_second_alone"]
        self.assertAlmostEqual(steps / updates, 40, delta=0.1)
        self.assertBetween(run["busy_cores"], 0.01, measured["cores"] + 0.1)
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
