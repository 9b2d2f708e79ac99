"""When a role begins again and when it is given up, without processes."""

from unittest import mock

import ray
from absl.testing import absltest

from laser_tf import errors
from laser_tf.cluster import hub, role_process, supervision

_UNDER_WAY = object()
_DEAD = ray.exceptions.ActorUnavailableError("its socket is closed", None)


class _Actor:
    """Stands for Ray's handle: what `run` comes to is the last of `outcomes`."""

    def __init__(self):
        self.outcomes: list = []
        self.has_left = True  # whether its process has ended, once it is told to
        self.leave, self.stop = mock.Mock(), mock.Mock()
        self.run = mock.Mock()
        self.run.remote = self._run

    def _run(self, _) -> int:
        self.outcomes.append(_UNDER_WAY)
        return len(self.outcomes) - 1


class SupervisedTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._now = 1000.0
        self._actor = _Actor()
        self.enter_context(
            mock.patch.object(supervision.time, "monotonic", side_effect=lambda: self._now)
        )
        self.enter_context(mock.patch.object(supervision.ray, "wait", self._wait))
        self.enter_context(mock.patch.object(supervision.ray, "get", self._get))
        self._kill = self.enter_context(mock.patch.object(supervision.ray, "kill"))

    def _wait(self, works: list[int], timeout: float) -> tuple[list, list]:
        del timeout
        if works[0] is self._actor.leave.remote.return_value:
            return (works, []) if self._actor.has_left else ([], works)
        is_over = self._actor.outcomes[works[0]] is not _UNDER_WAY
        return (works, []) if is_over else ([], works)

    def _get(self, work: int, timeout: float | None = None) -> str | None:
        del timeout
        outcome = self._actor.outcomes[work]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _make(self, is_vital: bool = False, reply_seconds: float = 0.0) -> supervision.Supervised:
        return supervision.Supervised(
            "agent_00", self._actor, {}, is_vital=is_vital, reply_seconds=reply_seconds
        )

    def _pass(
        self, role: supervision.Supervised, seconds: float, state: str | None, outcome=_UNDER_WAY
    ) -> None:
        """Time in which a process says how it is, if there is one, and its work ends."""
        for _ in range(round(seconds)):
            self._now += 1.0
            role.watch(state and hub.Health("here", "node", 7, state, False, {}, 0.1))
        self._actor.outcomes[-1] = outcome
        role.watch(state and hub.Health("here", "node", 7, state, False, {}, 0.1))

    def _fail(self, role: supervision.Supervised, seconds: float) -> None:
        """The role raises an error."""
        error = ray.exceptions.RayTaskError("run", "Traceback", ValueError("no such level"))
        self._pass(role, seconds, "learns", error)

    def test_one_death_is_one_failure_however_long_ray_takes_to_start_a_process(self):
        role = self._make()
        self._pass(role, 300, "learns", _DEAD)
        self.assertEqual(role.restarts, 1)
        for _ in range(20):  # refused at once, while there is no process
            self._pass(role, 3, None, _DEAD)
        self.assertFalse(role.has_failed)
        self._pass(role, 3, None)
        self._pass(role, 10, "learns")
        self.assertTrue(role.is_working)
        self.assertEqual(role.restarts, 1)
        self._actor.leave.remote.assert_not_called()  # it would end the new process

    def test_what_the_process_before_has_said_is_not_taken_for_the_new_one(self):
        role = self._make()
        self._pass(role, 300, "learns", _DEAD)
        self._now += 3.0
        role.watch(None)
        for _ in range(20):
            self._now += 3.0
            self._actor.outcomes[-1] = _DEAD
            said = hub.Health("here", "node", 7, "learns", False, {}, self._now - 1300.0)
            role.watch(said)
            role.watch(said)
        self.assertFalse(role.has_failed)

    def test_four_failures_at_once_are_the_end(self):
        role = self._make()
        for count in (1, 2, 3):
            self._fail(role, 5)
            self.assertEqual(role.restarts, count)
            self.assertFalse(role.has_failed)
            self._pass(role, 3, None)
        self._fail(role, 5)
        self.assertTrue(role.has_failed)
        self.assertRegex(role.failure, "agent_00 failed 4 times at once .no such level")

    def test_time_to_load_is_no_work(self):
        role = self._make()
        for _ in range(4):
            self._pass(role, 100, role_process.STARTS)
            self._fail(role, 5)
            self._pass(role, 3, None)
        self.assertTrue(role.has_failed)

    def test_who_has_worked_for_long_may_fail_again(self):
        role = self._make()
        for _ in range(10):
            self._fail(role, 70)
            self._pass(role, 3, None)
        self.assertFalse(role.has_failed)
        self.assertEqual(role.restarts, 10)

    def test_who_ends_for_a_reason_begins_again(self):
        role = self._make()
        for _ in range(10):
            self._pass(role, 5, "learns", role_process.TOLD)
            self._pass(role, 3, None)
        self.assertFalse(role.has_failed)
        self._pass(role, 5, "learns", None)
        self.assertTrue(role.is_done)

    def _is_killed(
        self,
        role: supervision.Supervised,
        seconds: int,
        silent_seconds: int,
        state: str = "learns",
    ) -> bool:
        """Whether it is, while a hub answers for so long that it was silent for so long before."""
        with mock.patch.object(supervision.ray, "remote") as remote:
            for second in range(seconds):
                self._now += 1.0
                silence = float(silent_seconds + second)
                role.watch(hub.Health("here", "a" * 56, 7, state, False, {}, silence))
            return remote.called

    def test_who_says_nothing_while_others_can_be_heard_is_killed(self):
        role = self._make()
        self._pass(role, 200, "learns")
        self.assertFalse(self._is_killed(role, 120, 0))
        self.assertTrue(self._is_killed(role, 2, 120))

    def _act(self, role: supervision.Supervised, seconds: int, time_steps: int | None) -> bool:
        """Whether who is at the same for so long is killed: an actor, or (None) a learner."""
        metrics = {} if time_steps is None else {role_process.TIME_STEPS: float(time_steps)}
        with mock.patch.object(supervision.ray, "remote") as remote:
            for _ in range(seconds):
                self._now += 1.0
                role.watch(hub.Health("here", "a" * 56, 7, "acts", True, metrics, 0.1))
            return remote.called

    def test_a_step_of_environments_may_take_what_they_are_given(self):
        for reply_seconds in (0.0, 120.0):
            role = self._make(reply_seconds=reply_seconds)
            self.assertFalse(self._act(role, round(reply_seconds) + 60, 5))
            self.assertTrue(self._act(role, 3, 5))

    def test_a_learner_that_waits_for_others_is_begun_again_however_often(self):
        role = self._make()
        for _ in range(10):
            self.assertTrue(self._act(role, 70, None))
            self._pass(role, 3, "learns", _DEAD)
            self._pass(role, 3, None)
        self.assertFalse(role.has_failed)

    def test_who_never_gets_through_a_first_step_is_given_up(self):
        role = self._make()
        for _ in range(4):
            self.assertTrue(self._act(role, 63, 0))
            self._pass(role, 3, "acts", _DEAD)
            self._pass(role, 3, None)
        self.assertTrue(role.has_failed)

    def test_who_restores_replay_is_silent_for_as_long_as_that_takes(self):
        role = self._make()
        self._pass(role, 10, role_process.RESTORES)
        self.assertFalse(self._is_killed(role, 1_800, 0, role_process.RESTORES))
        self.assertTrue(self._is_killed(role, 2_000, 1_800, role_process.RESTORES))

    def test_a_replay_that_dies_of_being_restored_is_given_up(self):
        role = self._make()
        for _ in range(4):
            self._pass(role, 10, role_process.FOLLOWS)
            self._pass(role, 300, role_process.RESTORES, _DEAD)
            self._pass(role, 3, None)
        self.assertTrue(role.has_failed)

    def test_nobody_is_killed_for_what_the_hub_did_not_hear_while_it_stood_still(self):
        role = self._make()
        self._pass(role, 200, "learns")
        self._pass(role, 150, None)  # it does not answer
        self.assertFalse(self._is_killed(role, 100, 150))
        self._now += 150.0  # now this process stands still
        self.assertFalse(self._is_killed(role, 100, 150))
        self.assertTrue(self._is_killed(role, 30, 250))

    def test_who_works_is_asked_to_end_and_who_has_no_process_yet_is_not_waited_for(self):
        role = self._make()
        self._pass(role, 10, "learns")
        role.stop()
        self._actor.stop.remote.assert_called_once_with()
        self._kill.assert_not_called()
        waiting = supervision.Supervised("agent_01", self._actor, {}, is_vital=False)
        self._pass(waiting, 10, None)
        waiting.stop()
        self._kill.assert_called_once_with(self._actor, no_restart=True)
        self._actor.stop.remote.assert_called_once_with()

    def test_whether_work_has_ended_well(self):
        role = self._make()
        self._pass(role, 10, "learns")
        self.assertTrue(role.stop())
        for outcome, is_well in ((role_process.TOLD, True), (_DEAD, False)):
            self._actor.outcomes[-1] = outcome
            self.assertEqual(role.has_ended_well(), is_well)
        self.assertFalse(role.stop())  # there is nobody to be asked

    def test_whose_process_is_started_again_is_not_waited_for_either(self):
        role = self._make()
        self._pass(role, 300, "learns", _DEAD)
        self.assertTrue(role.is_there)
        self._now += 3.0
        role.watch(None)
        self.assertFalse(role.is_there)
        role.stop()
        self._kill.assert_called_once_with(self._actor, no_restart=True)

    def test_nothing_is_begun_in_a_process_that_is_about_to_leave(self):
        role = self._make()
        self._actor.has_left = False
        self._pass(role, 5, "learns", role_process.TOLD)
        self._pass(role, 20, "learns")
        self.assertLen(self._actor.outcomes, 1)
        self._actor.has_left = True
        self._pass(role, 1, "learns")
        self.assertLen(self._actor.outcomes, 2)
        self.assertEqual(role.restarts, 1)

    def test_a_process_that_does_not_leave_is_not_waited_for_without_end(self):
        role = self._make()
        self._actor.has_left = False
        self._pass(role, 5, "learns", role_process.TOLD)
        self._pass(role, 40, "learns")
        self.assertLen(self._actor.outcomes, 2)

    def test_a_fault_of_the_user_s_ends_a_run_at_once_where_it_is_vital(self):
        role = self._make(is_vital=True)
        error = ray.exceptions.RayTaskError("run", "Traceback", errors.UserError("no room"))
        with self.assertRaisesRegex(supervision.RoleFailedError, "agent_00: no room"):
            self._pass(role, 5, "learns", error)

    def test_bug_restarts_a_vital_role(self):
        role = self._make(is_vital=True)
        self._fail(role, 5)
        self.assertEqual(role.restarts, 1)


if __name__ == "__main__":
    absltest.main()
