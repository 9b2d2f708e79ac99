"""Equal speed of members, and members that start late, restart, finish or die."""

from absl.testing import absltest

from laser_tf.sweeps import speed_limiter


class SpeedLimiterTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._now = 0.0
        self._limiter = speed_limiter.SpeedLimiter(
            ["a", "b", "c"], max_lead_frames=100, clock=lambda: self._now
        )

    def _report(self, **frames: int) -> None:
        for member, count in frames.items():
            self._limiter.report(member, count)

    def _assert_limits(self, **limits: int) -> None:
        self.assertEqual({member: self._limiter.limit(member) for member in limits}, limits)

    def test_slowest_member_limits_the_others(self):
        self._report(a=0, b=0, c=0)
        self._report(a=80, b=50)
        self._assert_limits(a=100, b=100, c=100)
        self._report(c=70)
        self._assert_limits(a=150, b=150, c=150)

    def test_members_wait_for_one_that_starts(self):
        self._report(a=5_000, b=3_000)  # of a resumed sweep
        self._report(a=5_080, b=3_090)
        self._assert_limits(a=5_100, b=3_100)
        self._report(c=4_000)
        self._report(c=4_060)
        self._assert_limits(a=5_160, b=3_160, c=4_160)

    def test_member_that_never_starts_is_ignored_after_a_while(self):
        self._report(a=0, b=0)
        self._now = speed_limiter.START_SECONDS + 1
        self._report(a=90, b=90)
        self._assert_limits(a=190)

    def test_silent_and_finished_members_are_ignored(self):
        self._report(a=500, b=10, c=0)
        self._report(a=550, b=15, c=20)
        self._limiter.leave("b")
        self._assert_limits(a=620)  # c's distance and a hundred
        self._now = speed_limiter.SILENCE_SECONDS + 1
        self._report(a=560)
        self._assert_limits(a=660)

    def test_restarted_member_runs_at_the_speed_of_the_others(self):
        self._report(a=1000, b=1000, c=1000)
        self._limiter.leave("c")
        self._report(a=1500, b=1520)
        self._limiter.expect("c")
        self._report(c=900)  # from its checkpoint
        self._assert_limits(a=1600, c=1000)
        self._report(a=1590, b=1590)
        self._assert_limits(a=1600)  # c keeps its distance of 600
        self._report(c=990)
        self._assert_limits(a=1690, c=1090)

    def test_late_member_runs_at_the_speed_of_the_others(self):
        self._report(a=0, b=0)
        self._now = speed_limiter.START_SECONDS + 1
        self._report(a=5_000, b=5_000)
        self._limiter.expect("c")
        self._assert_limits(a=5_100)  # No member waits while it starts.
        self._report(c=0)
        self._assert_limits(a=5_100, b=5_100, c=100)
        self._report(a=5_090, b=5_090)
        self._assert_limits(a=5_100)  # now they do
        self._report(c=80)
        self._assert_limits(a=5_180, b=5_180, c=180)

    def test_member_that_starts_slowly_does_not_stop_the_others(self):
        self._limiter.expect("c")
        self._report(a=0, b=0)
        self._now = speed_limiter.START_SECONDS + 1
        self._report(a=5_000, b=5_000)
        self._report(c=0)
        self._assert_limits(a=5_100, b=5_100, c=100)

    def test_others_do_not_wait_while_a_member_restarts(self):
        self._report(a=0, b=0, c=0)
        self._limiter.leave("c")
        self._report(a=5_000, b=5_000)
        self._limiter.expect("c")
        self._assert_limits(a=5_100)
        self._limiter.leave("b")
        self._limiter.expect("b")
        self._report(b=40)  # c's old distance does not count for it
        self._assert_limits(a=5_100, b=140)


if __name__ == "__main__":
    absltest.main()
