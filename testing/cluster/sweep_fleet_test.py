"""What a sweep says of its agents, and how it ends, without processes."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from configs import sweeps
from laser_tf import errors
from laser_tf.cluster import sweep_fleet
from laser_tf.environments import factory
from laser_tf.sweeps import sweep_config

_DONE, _FAILED = {"is_done": True}, {"has_failed": True}


class SweepFleetTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._made: dict[str, mock.Mock] = {}
        self._end = self.enter_context(mock.patch.object(sweep_fleet.roles, "end"))
        self._ray = self.enter_context(mock.patch.object(sweep_fleet, "ray"))
        roles = sweep_fleet.roles
        self.enter_context(mock.patch.object(roles, "make_hub"))
        self._here = self.enter_context(mock.patch.object(roles, "here"))
        self.enter_context(mock.patch.object(roles, "restarted"))
        self.enter_context(mock.patch.object(roles, "write_states"))
        self.enter_context(mock.patch.object(roles, "make_role", self._make_role))
        self._healths = self.enter_context(mock.patch.object(roles, "healths"))
        self.enter_context(mock.patch.object(sweep_fleet.time, "sleep"))

    def _make_role(self, name: str, *_, **__) -> mock.Mock:
        role = mock.Mock(
            is_done=False, has_failed=False, restarts=0, is_working=True, is_there=True
        )
        role.name = name
        self._made[name] = role
        return role

    def _make(self, **run) -> sweep_fleet.SweepFleet:
        values = sweeps.get_config("catch").to_dict()
        values["run"].update(run)
        config = sweep_config.parse(values)
        spec = factory.environment_spec(config.first.environment)
        return sweep_fleet.SweepFleet(config, self._folder, spec)

    def _watch_once(self, fleet: sweep_fleet.SweepFleet) -> dict[str, str]:
        """Returns what the display says of the agents."""
        interrupted, display = mock.Mock(), mock.Mock()
        type(interrupted).stop = mock.PropertyMock(side_effect=[False, True, True])
        fleet.run(interrupted, display)
        return display.update.call_args.args[1]

    def _set(self, name: str, **values) -> None:
        """What becomes of a role when it is looked at."""
        self._made[name].watch.side_effect = lambda _: self._made[name].configure_mock(**values)

    @parameterized.parameters((30, "finished, evaluating"), (0, "finished"))
    def test_a_finished_agent_is_not_running(self, evaluation_episodes, expected):
        fleet = self._make(evaluation_episodes=evaluation_episodes)
        self._set("agent_00", **_DONE)
        self._made["agent_02"].restarts = 2
        self._made["agent_03"].configure_mock(restarts=1, is_there=False)
        self._healths.return_value = {name: mock.Mock() for name in self._made}
        self._ray.get.return_value = {
            name: {"env_frames": 9, "finished": name in ("agent_00", "agent_01")}
            for name in self._made
        }
        self.assertEqual(
            self._watch_once(fleet),
            {
                "agent_00": "finished",
                "agent_01": expected,  # its process is still there
                "agent_02": "running, restarted 2 times",
                "agent_03": "starts, restarted 1 times",  # its machine was lost
            },
        )

    def test_the_coordinator_is_on_the_driver_s_machine_and_replay_where_it_has_room(self):
        self._make()
        self.assertEqual(self._here.call_args_list, [mock.call(), mock.call(soft=True)])

    def test_every_agent_asks_for_what_a_learner_asks_for(self):
        values = sweeps.get_config("catch").to_dict()
        values["cluster"].update(learner_gpus=64.0)
        config = sweep_config.parse(values)
        self.assertEqual(sweep_fleet.asked(config), (5.0, 256.0))  # replay is the fifth CPU

    def test_who_is_over_gives_its_process_back_and_who_has_died_is_not_waited_for(self):
        fleet = self._make()
        self._healths.return_value, self._ray.get.return_value = {}, {}
        self._set("agent_00", **_DONE, is_working=False)
        self._set("agent_01", **_FAILED, is_working=False)
        self._set("agent_02", is_working=False)
        self._watch_once(fleet)
        released = [name for name, role in self._made.items() if role.release.called]
        self.assertEqual(released, ["agent_00", "agent_01"])
        lost = [call.args[0] for call in fleet._meeting.lose.remote.call_args_list]
        self.assertEqual(lost, ["agent_00", "agent_01", "agent_02"])
        groups, *_ = self._end.call_args.args
        self.assertEqual([len(group) for group in groups], [4, 1])
        self.assertEqual(groups[1][0].name, "replay")  # last

    def test_a_sweep_ends_with_the_names_of_those_that_failed(self):
        fleet = self._make()
        for name in ("agent_01", "agent_03"):
            self._made[name].has_failed = True
        with self.assertRaisesRegex(errors.UserError, "^failed: agent_01, agent_03; see their"):
            fleet.check_outcome()
        self.assertFalse((self._folder / "finished").exists())

    def test_a_sweep_whose_agents_are_done_is_finished(self):
        self._make().check_outcome()
        self.assertTrue((self._folder / "finished").exists())

    def test_a_damaged_lineage_is_refused_before_anything_starts(self):
        path = self._folder / "population/lineage.csv"
        path.parent.mkdir()
        path.write_text("env_frames,agent,parent,fitness,a.b\n40,agent_00,,0.1,x\n50")
        with self.assertRaisesRegex(ValueError, "line 2 of .* is damaged"):
            self._make()
        self.assertEmpty(self._made)


if __name__ == "__main__":
    absltest.main()
