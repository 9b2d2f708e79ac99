"""The cost model of launch.benchmark: costs per agent step, bound and fixed costs of calls."""

import re

from absl.testing import absltest

from launch import cost_model


def _model():
    # Two cores; an update of 8 unrolls, 2 of them new, of 20 steps.
    parts = {
        "environment": cost_model.Part(cost_model.Timing(0.004, 0.008), 16),
        "update": cost_model.Part(cost_model.Timing(0.02, 0.02), 2 * 20),
    }
    # 4 ms + 2 ms per unroll; 12 ms + 1 ms per unroll of processor time.
    timings = cost_model.Timing(0.020, 0.020), cost_model.Timing(0.068, 0.044)
    calls = {"update": cost_model.Call("unroll", (8, 32), timings)}
    run = cost_model.EndToEnd(10.0, 7.5, 5_000, 125, 5.0)
    return cost_model.CostModel("laser:x", 2, parts, calls, run)


class CostModelTest(absltest.TestCase):
    def test_costs_are_per_new_agent_step(self):
        model = _model()
        self.assertAlmostEqual(model.parts["environment"].microseconds, 500)
        self.assertAlmostEqual(model.parts["environment"].agent_steps_per_second, 4_000)
        self.assertAlmostEqual(model.parts["update"].microseconds, 500)
        self.assertAlmostEqual(model.end_to_end.microseconds, 1_500)

    def test_bound_is_that_of_all_cores_and_parts(self):
        model = _model()
        self.assertAlmostEqual(model.bound, 2_000)
        self.assertAlmostEqual(model.share_of_bound, 0.25)

    def test_two_sizes_give_fixed_cost_and_cost_per_entry(self):
        call = _model().calls["update"]
        for clock, fixed, per_entry in (("wall", 4, 2), ("processor", 12, 1)):
            with self.subTest(clock):
                costs = call.costs(clock)
                self.assertAlmostEqual(costs[0], fixed)
                self.assertAlmostEqual(costs[1], per_entry)

    def test_rows_fit_the_columns(self):
        rows = {row["part"]: tuple(row.values()) for row in _model().rows()}
        self.assertEqual(tuple(_model().rows()[0]), cost_model.COLUMNS)
        self.assertEqual(rows["update"], ("laser:x", "update", 2_000, 500, 4, 2, 12, 1, 2))
        self.assertEqual(rows["bound"], ("laser:x", "bound", 2_000, 1_000, *[None] * 4, 2))
        self.assertEqual(rows["end to end"][2:4], (500, 1_500))

    def test_tables_have_a_line_for_each_part_and_call(self):
        cells = [re.split(r"  +", line) for line in _model().table().splitlines()]
        self.assertIn(["environment", "4,000", "500.0", "33%"], cells)
        self.assertIn(["bound", "2,000", "1,000.0", "67%"], cells)
        self.assertIn(["update", "32 unrolls", "68.00", "44.00"], cells)
        self.assertIn(["update", "n unrolls", "4.00 + 2.000 n", "12.00 + 1.000 n"], cells)


if __name__ == "__main__":
    absltest.main()
