"""Who waits for a machine with room, and for how long, without Ray."""

from unittest import mock

from absl.testing import absltest

from laser_tf.cluster import placement, supervision


def _role(name: str, is_vital: bool = False) -> mock.Mock:
    role = mock.Mock(is_vital=is_vital)
    role.name = name
    return role


class PlacementTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._minutes = 0.0
        self.enter_context(
            mock.patch.object(placement.time, "monotonic", lambda: 60 * self._minutes)
        )
        self._learner = _role("learner", is_vital=True)
        self._actors = [_role("actor_00"), _role("actor_01")]
        self._placement = placement.Placement(0.0)

    def _check(self, minutes: float, *heard: str) -> None:
        self._minutes = minutes
        self._placement.check([self._learner, *self._actors], heard, self._actors)

    def test_a_hub_that_was_restarted_ends_no_run(self):
        self._check(1, "learner", "actor_00", "actor_01")
        self._check(30)
        self._check(31, "actor_01")

    def test_a_learner_without_a_machine_ends_the_run_but_not_at_once(self):
        with self.assertLogs(level="INFO") as logs:
            self._check(3, "actor_00")
        self.assertIn("learner, actor_01 wait for a machine with room", logs.output[0])
        with self.assertRaisesRegex(
            supervision.RoleFailedError,
            "^after 6 minutes no machine of the cluster has room for learner, actor_01: add machi",
        ):
            self._check(6, "actor_00")

    def test_one_actor_is_enough_and_none_is_not(self):
        self._check(30, "learner", "actor_01")
        self._placement = placement.Placement(0.0)
        with self.assertRaisesRegex(supervision.RoleFailedError, "room for actor_00, actor_01:"):
            self._check(60, "learner")

    def test_machines_that_will_join_are_waited_for(self):
        self._placement = placement.Placement(20.0)
        self._check(19)
        with self.assertRaises(supervision.RoleFailedError):
            self._check(21)


if __name__ == "__main__":
    absltest.main()
