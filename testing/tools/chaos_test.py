"""What `tools.chaos` draws and reckons; it runs by hand, as it takes minutes."""

import itertools

from absl.testing import absltest

from tools.chaos import faults, memory, outcomes


class ChaosTest(absltest.TestCase):
    def test_all_kinds_of_faults_come_before_any_comes_again(self):
        drawn = list(itertools.islice(faults.draw(seed=3), 2 * len(faults.KINDS)))
        for half in (drawn[: len(faults.KINDS)], drawn[len(faults.KINDS) :]):
            self.assertCountEqual(half, faults.KINDS)
        self.assertEqual(drawn, list(itertools.islice(faults.draw(seed=3), len(drawn))))
        self.assertEqual(set(itertools.islice(faults.draw(3, "hub k"), 5)), {"hub killed"})

    def test_each_fault_is_charged_what_was_counted_until_the_next(self):
        suffered = [outcomes.Outcome("a", 10.0, 2.0), outcomes.Outcome("b", 20.0, 3.0)]
        suffered.append(outcomes.Outcome("a", 30.0, 6.0, lost_updates=7))
        outcomes.attribute(suffered, {"lost_unrolls": [(5, 9), (12, 1), (29, 2), (31, 4)]})
        table = {row["fault"]: row for row in outcomes.rows(suffered)}
        self.assertEqual(table["a"]["lost_unrolls"], "5")
        self.assertEqual(table["b"]["lost_unrolls"], "2")
        self.assertEqual(table["a"]["recovered_median_seconds"], "4.0")
        self.assertEqual(table["a"]["lost_updates_max"], "7")

    def test_a_fault_that_was_not_survived_says_so(self):
        suffered = [outcomes.Outcome("a", 10.0, 2.0), outcomes.Outcome("a", 20.0)]
        (row,) = outcomes.rows(suffered)
        self.assertEqual(row["recovered_max_seconds"], "never")
        self.assertIn("| a | 2 | 2.0 | never |", outcomes.markdown([row]))

    def test_memory_that_differs_between_processes_of_a_role_has_not_grown(self):
        flat = [(60.0 * i, "actor", 1, 500.0) for i in range(10)]
        flat += [(60.0 * i, "actor", 2, 700.0) for i in range(10, 20)]
        growing = [(60.0 * i, "learner", 3, 500 + 2.0 * i + 99 * (i < 2)) for i in range(12)]
        slopes = memory.slopes(flat + growing, warm_up_seconds=120)
        self.assertAlmostEqual(slopes["actor"][0], 0.0)
        self.assertAlmostEqual(slopes["learner"][0], 2.0)
        self.assertAlmostEqual(slopes["learner"][1], 9.0)


if __name__ == "__main__":
    absltest.main()
