"""What a run's folder says of its roles, without Ray."""

import csv
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from laser_tf.cluster import hub, role_process, roles


class RestartedTest(absltest.TestCase):
    def test_ray_keeps_no_record_of_its_calls(self):
        # Of each it would keep 3 KB, a hundred thousand times.
        with mock.patch.object(roles.ray, "remote") as remote:
            roles.restarted(hub.Hub, num_cpus=0)
        self.assertEqual(
            remote.call_args.kwargs,
            {"max_restarts": -1, "enable_task_events": False, "num_cpus": 0},
        )


class RolesTest(absltest.TestCase):
    def test_the_hub_is_on_the_driver_s_machine(self):
        # Asked softly Ray places what takes no CPUs on any machine, whose loss then is the hub's.
        with mock.patch.object(roles, "ray") as ray:
            ray.get_runtime_context.return_value.get_node_id.return_value = "ab" * 28
            roles.make_hub(pathlib.Path("/runs/one"))
        place = ray.remote.call_args.kwargs["scheduling_strategy"]
        self.assertEqual((place.node_id, place.soft), ("ab" * 28, False))

    def test_what_a_process_that_has_died_said_is_not_the_state_of_the_next(self):
        role = mock.Mock(is_done=False, has_failed=False, restarts=1)
        role.name = "learner"
        said = {"learner": hub.Health("far", "node", 7, "learns, slowly", False, {}, 30.0)}
        with tempfile.TemporaryDirectory() as folder:
            for is_there, expected in ((True, "learns; slowly"), (False, "starts")):
                role.is_there = is_there
                roles.write_states(pathlib.Path(folder), [role], said)
                text = pathlib.Path(folder, roles.ROLES).read_text()
                (row,) = csv.DictReader(text.splitlines())
                self.assertEqual(row["state"], expected)
                self.assertEqual(row["host"], "far")


class EndTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._now, self._ends_after, self._hub_is_away = 0.0, 0.0, range(0)
        self._state = role_process.SAVES
        clock = self.enter_context(mock.patch.object(roles, "time"))
        clock.monotonic = lambda: self._now
        clock.sleep = self._sleep
        self.enter_context(mock.patch.object(roles, "healths", self._healths))
        self._role = mock.Mock()
        self._role.name = "replay"
        type(self._role).is_working = mock.PropertyMock(
            side_effect=lambda: self._now < self._ends_after
        )
        self._role.has_ended_well = lambda: self._now >= self._ends_after

    def _sleep(self, seconds: float) -> None:
        self._now += seconds

    def _healths(self, _) -> dict[str, hub.Health]:
        if int(self._now) in self._hub_is_away:
            return {}
        return {"replay": hub.Health("here", "node", 7, self._state, False, {}, 0.5)}

    def _end(self, seconds: float, interrupted: mock.Mock) -> str:
        self._ends_after = seconds
        return roles.outcome(interrupted, roles.end([[self._role]], interrupted, None))

    def test_a_large_replay_is_saved_to_its_end_though_the_hub_is_away_meanwhile(self):
        self._hub_is_away = range(500, 600)
        ended = self._end(2_000.0, mock.Mock(hurry=False))
        self.assertEqual(ended, "stopped and saved; the same command resumes")
        self.assertBetween(self._now, 2_000.0, 2_001.0)

    def test_who_does_not_save_is_not_waited_for_without_end_and_told(self):
        self._state = role_process.LEARNS
        ended = self._end(2_000.0, mock.Mock(hurry=False))
        self.assertRegex(ended, "stopped, but not all is saved: replay; .* the last checkpoints")
        self.assertLess(self._now, 190.0)

    def test_who_has_ended_in_an_error_has_not_saved_all(self):
        self._role.has_ended_well = lambda: False
        ended = self._end(5.0, mock.Mock(hurry=False))
        self.assertRegex(ended, "^stopped, but not all is saved: replay;")

    def test_a_second_interruption_ends_the_waiting_and_nothing_is_called_saved(self):
        ended = self._end(2_000.0, mock.Mock(hurry=True))
        self.assertEqual(ended, "killed; the same command resumes from the last checkpoints")
        self.assertLess(self._now, 1.0)


if __name__ == "__main__":
    absltest.main()
