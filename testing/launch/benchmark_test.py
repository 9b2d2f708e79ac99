"""launch.benchmark measures every part and prints one object."""

import json

from absl.testing import absltest

from testing import commands


class BenchmarkTest(absltest.TestCase):
    def test_paces_of_a_run_and_of_its_parts(self):
        code, output, errors = commands.run_forked(
            "benchmark", "--config=configs/laser.py:catch", "--seconds=1", "--part_seconds=0.1"
        )
        self.assertEqual(code, 0, errors)
        measured = json.loads(output)
        self.assertEqual(
            set(measured["agent_steps_per_second_alone"]),
            {"environment", "inference", "writing", "sampling", "update"},
        )
        for pace in measured["agent_steps_per_second_alone"].values():
            self.assertGreater(pace, 0)
        self.assertIn("agent_steps_per_second", measured["end_to_end"])


if __name__ == "__main__":
    absltest.main()
