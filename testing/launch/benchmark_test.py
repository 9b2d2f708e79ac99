"""launch.benchmark measures every part and prints one object."""

import json

from absl.testing import absltest, parameterized

from testing import commands


class BenchmarkTest(parameterized.TestCase):
    def test_paces_of_a_run_and_of_its_parts(self):
        code, output, errors = commands.run(
            "benchmark", "--config=configs/laser.py:catch", "--seconds=2", "--part_seconds=0.1"
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

    @parameterized.parameters("cluster.actors=2", "replay.address=localhost:1")
    def test_what_is_not_of_one_process_is_refused_in_one_line(self, value):
        code, _, errors = commands.run(
            "benchmark", "--config=configs/laser.py:catch", f"--config.{value}"
        )
        self.assertEqual(code, 1)
        self.assertRegex(errors, "^error: what is measured is one process with .*: leave out")
        self.assertLen(errors.splitlines(), 1, errors)


if __name__ == "__main__":
    absltest.main()
