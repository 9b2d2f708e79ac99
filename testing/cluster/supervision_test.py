"""When a role is restarted and when it fails for good, without processes."""

from unittest import mock

import ray
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.cluster import role, role_process, run_state, supervision
from laser_tf.cluster.run_state import Status

_DEAD = ray.exceptions.ActorDiedError()


def _task_error(error: Exception) -> ray.exceptions.RayTaskError:
    return ray.exceptions.RayTaskError("run", "Traceback", error)


class SupervisedRoleTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._now = 1000.0
        self._ending: bool | Exception | None = None  # Of the work; None while it continues.
        self._kills = 0  # Of a process that works.
        self._handle = mock.Mock()
        self._make_process = mock.Mock(side_effect=self._start)
        self.enter_context(
            mock.patch.multiple(ray, wait=self._wait, get=self._get, kill=self._kill)
        )

    def _start(self) -> mock.Mock:
        self._ending = None
        return self._handle

    def _wait(self, work: list, timeout: float) -> tuple[list, list]:
        return ([], work) if self._ending is None else (work, [])

    def _get(self, work: object, timeout: float) -> bool:
        if self._ending is None:
            raise ray.exceptions.GetTimeoutError
        if isinstance(self._ending, Exception):
            raise self._ending
        return self._ending

    def _kill(self, handle: mock.Mock) -> None:
        if self._ending is None:
            self._kills += 1
            self._ending = _DEAD

    @property
    def _starts(self) -> int:
        return self._make_process.call_count

    def _make(self, **options) -> supervision.SupervisedRole:
        spec = role.RoleSpec("actor_00", "", {}, role.StopStage.ACTING, **options)
        return supervision.SupervisedRole(spec, self._make_process, clock=lambda: self._now)

    def _pass(
        self,
        supervised: supervision.SupervisedRole,
        seconds: int,
        status: Status | None = Status.RUNNING,
        *,
        must_progress: bool = False,
        env_calls: float | None = None,
        age: float = 0.1,
        grows: bool = False,
    ) -> None:
        """Checks the role every second; `status` None: without a heartbeat."""
        metrics = {} if env_calls is None else {role.ENV_CALLS: env_calls}
        for second in range(seconds):
            self._now += 1.0
            heartbeat = run_state.Heartbeat(
                "host", 7, status, "", must_progress, metrics, age + second * grows
            )
            supervised.check(heartbeat if status else None)

    def _end(self, supervised: supervision.SupervisedRole, outcome: bool | Exception) -> None:
        self._ending = outcome
        self._pass(supervised, 1)

    def _end_early(self, supervised: supervision.SupervisedRole, outcome: bool | Exception) -> None:
        self._pass(supervised, 5)
        self._end(supervised, outcome)
        self._pass(supervised, 3, None)

    def test_announcement_is_logged_once_by_the_driver(self):
        supervised = self._make()
        heartbeat = run_state.Heartbeat(
            "host", 7, Status.RUNNING, "", False, {}, announcements=("needs 9 GB",)
        )
        with self.assertLogs(level="WARNING") as logs:
            for _ in range(3):
                supervised.check(heartbeat)
        self.assertLen(logs.output, 1)
        self.assertIn("needs 9 GB", logs.output[0])

    def test_completed_work_ends_the_role(self):
        supervised = self._make()
        self._pass(supervised, 5)
        self._end(supervised, True)
        self.assertTrue(supervised.is_done)
        self.assertEqual(supervised.status(None), Status.FINISHED)

    def test_crash_restarts_the_role_after_a_delay(self):
        supervised = self._make(is_required=True)
        self._pass(supervised, 5)
        self._end(supervised, _task_error(ValueError("bug")))
        self.assertEqual(self._starts, 1)
        self._pass(supervised, 3)
        self.assertEqual((self._starts, supervised.restarts), (2, 1))

    def test_four_early_failures_end_the_role_with_its_error(self):
        supervised = self._make()
        for _ in range(4):
            self._end_early(supervised, _task_error(ValueError("no such level")))
        self.assertEqual(supervised.restarts, 3)
        self.assertIn("no such level", supervised.final_failure)
        self.assertEqual(supervised.status(None), Status.FAILED)

    def test_four_early_failures_of_a_required_role_raise(self):
        supervised = self._make(is_required=True)
        with self.assertRaises(supervision.RoleFailedError):
            for _ in range(4):
                self._end_early(supervised, _DEAD)
        self.assertEqual(supervised.restarts, 3)

    def test_failures_after_long_work_do_not_count(self):
        supervised = self._make()
        for _ in range(10):
            self._pass(supervised, 70)
            self._end(supervised, _DEAD)
            self._pass(supervised, 3, None)
        self.assertEqual(supervised.restarts, 10)
        self.assertFalse(supervised.final_failure)

    @parameterized.parameters(Status.STARTING, Status.WAITING_FOR_LOCK, Status.RESTORING)
    def test_time_to_load_does_not_count_as_work(self, status):
        supervised = self._make()
        for _ in range(4):
            self._pass(supervised, 300, status)
            self._ending = _DEAD
            self._pass(supervised, 1, status)
            self._pass(supervised, 3, None)
        self.assertTrue(supervised.final_failure)

    def test_heartbeat_of_the_previous_process_is_ignored(self):
        supervised = self._make()
        self._pass(supervised, 300)
        self._end(supervised, _DEAD)
        self._pass(supervised, 3, None)
        self._pass(supervised, 5, age=60.0, grows=True)
        self.assertFalse(supervised.has_reported)
        heartbeat = run_state.Heartbeat("host", 7, Status.RUNNING, "", False, {}, 70.0)
        self.assertEqual(supervised.status(heartbeat), Status.STARTING)

    def test_process_that_waits_for_a_machine_is_not_killed(self):
        supervised = self._make(is_required=True)
        self._pass(supervised, 300)
        self.assertEqual(supervised.waiting_seconds, 0)
        self._end(supervised, _DEAD)
        self._pass(supervised, 600, must_progress=True, age=2.0, grows=True)  # Of the last process.
        self.assertEqual((self._kills, self._starts), (0, 2))
        self.assertBetween(supervised.waiting_seconds, 590, 600)

    @parameterized.parameters(
        (False,), (_task_error(role.RestartError("another learner has ended")),)
    )
    def test_end_without_a_failure_restarts_without_limit(self, outcome):
        supervised = self._make()
        for _ in range(10):
            self._end_early(supervised, outcome)
        self.assertFalse(supervised.final_failure)

    @parameterized.parameters(
        (errors.UserError("no space"), True), (role_process.MachineDiffersError("numpy"), False)
    )
    def test_error_that_a_restart_repeats_ends_the_run(self, error, is_required):
        supervised = self._make(is_required=is_required)
        with self.assertRaises(supervision.RoleFailedError):
            self._end(supervised, _task_error(error))

    @parameterized.parameters((Status.RUNNING, 120), (Status.RESTORING, 3_600))
    def test_silent_process_is_killed(self, status, limit):
        supervised = self._make()
        self._pass(supervised, 10, status)
        self._pass(supervised, limit - 5, status, grows=True)
        self.assertEqual(self._kills, 0)
        self._pass(supervised, 20, status, age=limit, grows=True)
        self.assertEqual((self._kills, self._starts, supervised.restarts), (1, 2, 1))

    def test_silence_of_the_state_or_the_driver_does_not_count(self):
        supervised = self._make()
        self._pass(supervised, 200)
        self._pass(supervised, 150, None)  # The run's state does not answer.
        self._pass(supervised, 100, age=150.0, grows=True)
        self._now += 150.0  # The driver stands still.
        self._pass(supervised, 100, age=400.0, grows=True)
        self.assertEqual(self._kills, 0)
        self._pass(supervised, 30, age=500.0, grows=True)
        self.assertEqual(self._kills, 1)

    @parameterized.parameters(0.0, 120.0)
    def test_hanging_environment_step_is_killed(self, max_step_seconds):
        supervised = self._make(max_step_seconds=max_step_seconds)
        self._pass(supervised, 60 + int(max_step_seconds), must_progress=True, env_calls=5.0)
        self.assertEqual(self._kills, 0)
        self._pass(supervised, 3, must_progress=True, env_calls=5.0)
        self.assertEqual(self._kills, 1)

    @parameterized.parameters((0.0, True), (None, False))
    def test_hanging_in_the_first_step_counts_as_failure(self, env_calls, has_failed):
        # A learner that waits for other learners has no steps and restarts without limit.
        supervised = self._make()
        for _ in range(4):
            self._pass(supervised, 63, must_progress=True, env_calls=env_calls)
            self._end(supervised, _DEAD)
            self._pass(supervised, 3, None)
        self.assertEqual(bool(supervised.final_failure), has_failed)
        self.assertEqual(self._kills, 4)

    def test_stop_kills_a_role_without_a_process(self):
        supervised = self._make()
        self._pass(supervised, 10)
        self.assertTrue(supervised.request_stop())
        self._handle.stop.remote.assert_called_once_with()
        self.assertEqual(self._kills, 0)
        waiting = self._make()
        self.assertFalse(waiting.request_stop())
        self._handle.stop.remote.assert_called_once_with()
        self.assertEqual(self._kills, 1)

    @parameterized.parameters((False, False), (_DEAD, True), (None, True))
    def test_work_without_a_clean_end_is_unsaved(self, outcome, is_unsaved):
        supervised = self._make()
        self._ending = outcome
        self.assertFalse(supervised.has_unsaved_work)  # No process has worked yet.
        self._ending = None
        self._pass(supervised, 10)
        self._ending = outcome
        self.assertEqual(supervised.has_unsaved_work, is_unsaved)


if __name__ == "__main__":
    absltest.main()
