"""Agents of a sweep run at equal speed, and a dead one holds nobody up."""

from absl.testing import absltest

from laser_tf.sweeps import pace


class PaceTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._now = 0.0
        self._pace = pace.Pace(["a", "b", "c"], max_lead=100, clock=lambda: self._now)

    def _start(self, **frames: int) -> None:
        for agent, count in frames.items():
            self._pace.join(agent, count)

    def test_nobody_runs_ahead_of_the_slowest(self):
        self._start(a=0, b=0, c=0)
        self._pace.report("a", 80)
        self._pace.report("b", 50)
        self.assertEqual([self._pace.limit(agent) for agent in "abc"], [100, 100, 100])
        self._pace.report("c", 70)
        self.assertEqual([self._pace.limit(agent) for agent in "abc"], [150, 150, 150])

    def test_those_who_have_not_come_yet_are_waited_for_a_while(self):
        self._start(a=5_000, b=3_000)  # of a resumed sweep
        self._pace.report("a", 5_080)
        self._pace.report("b", 3_090)
        self.assertEqual([self._pace.limit(agent) for agent in "ab"], [5_100, 3_100])
        self._start(c=4_000)
        self._pace.report("c", 4_060)
        self.assertEqual([self._pace.limit(agent) for agent in "abc"], [5_160, 3_160, 4_160])

    def test_who_never_comes_is_given_up(self):
        self._start(a=0, b=0)
        self._now = pace.START_SECONDS + 1
        self._pace.report("a", 90)
        self._pace.report("b", 90)
        self.assertEqual(self._pace.limit("a"), 190)

    def test_the_silent_and_those_who_leave_hold_nobody_up(self):
        self._start(a=500, b=10, c=0)
        for agent, frames in (("a", 550), ("b", 15), ("c", 20)):
            self._pace.report(agent, frames)
        self._pace.leave("b")
        self.assertFalse(self._pace.is_running("b"))
        self.assertEqual(self._pace.limit("a"), 620)  # c's distance and a hundred
        self._now = pace.SILENCE_SECONDS + 1
        self._pace.report("a", 560)
        self.assertEqual(self._pace.limit("a"), 660)

    def test_who_comes_back_goes_on_at_the_others_speed(self):
        self._start(a=1000, b=1000, c=1000)
        self._pace.leave("c")
        self._pace.report("a", 1500)
        self._pace.report("b", 1520)
        self._pace.expect("c")
        self._pace.join("c", 900)  # from its checkpoint
        self.assertEqual(self._pace.limit("a"), 1600)
        self.assertEqual(self._pace.limit("c"), 1000)
        self._pace.report("a", 1590)
        self._pace.report("b", 1590)
        self.assertEqual(self._pace.limit("a"), 1600)  # c keeps its distance of 600
        self._pace.report("c", 990)
        self.assertEqual(self._pace.limit("a"), 1690)
        self.assertEqual(self._pace.limit("c"), 1090)

    def test_who_comes_first_when_the_others_have_gone_on_runs_beside_them(self):
        self._start(a=0, b=0)
        self._now = pace.START_SECONDS + 1
        for agent in "ab":
            self._pace.report(agent, 5_000)
        self._pace.expect("c")
        self.assertTrue(self._pace.is_running("c"))  # its name is taken
        self.assertEqual(self._pace.limit("a"), 5_100)  # but nobody waits while it starts
        self._pace.join("c", 0)
        self.assertEqual([self._pace.limit(agent) for agent in "abc"], [5_100, 5_100, 100])
        self._pace.report("a", 5_090)
        self._pace.report("b", 5_090)
        self.assertEqual(self._pace.limit("a"), 5_100)  # now they do
        self._pace.report("c", 80)
        self.assertEqual([self._pace.limit(agent) for agent in "abc"], [5_180, 5_180, 180])

    def test_who_comes_back_is_not_waited_for_while_it_starts(self):
        self._start(a=0, b=0, c=0)
        self._pace.leave("c")
        for agent in "ab":
            self._pace.report(agent, 5_000)
        self._pace.expect("c")
        self.assertEqual(self._pace.limit("a"), 5_100)
        self._pace.leave("b")
        self._pace.expect("b")
        self._pace.join("b", 40)  # c's old distance does not count for it
        self.assertEqual([self._pace.limit(agent) for agent in "ab"], [5_100, 140])

    def test_alone_nobody_is_held_up(self):
        self._start(a=1000, b=1000, c=1000)
        for agent in "bc":
            self._pace.leave(agent)
        self._pace.join("a", 700)
        self._pace.report("a", 90_000)
        self.assertEqual(self._pace.limit("a"), 90_100)


if __name__ == "__main__":
    absltest.main()
