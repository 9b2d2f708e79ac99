"""What becomes of a run's roles at its end, without processes."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from configs import laser
from laser_tf.cluster import fleet
from laser_tf.environments import factory
from laser_tf.training import run_config


class FleetRolesTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._made: dict[str, mock.Mock] = {}
        roles = fleet.roles
        self._end = self.enter_context(mock.patch.object(roles, "end", return_value=["replay"]))
        self.enter_context(mock.patch.object(roles, "make_hub"))
        self.enter_context(mock.patch.object(roles, "make_role", self._make_role))

    def _make_role(self, name: str, *_, **__) -> mock.Mock:
        role = mock.Mock(is_done=False, has_failed=False)
        role.name = name
        self._made[name] = role
        return role

    def test_replay_ends_last_and_nobody_waits_for_an_evaluation_or_long_for_actors(self):
        values = laser.get_config("catch").to_dict()
        values["cluster"] = {"actors": 2, "learners": 2}
        values["run"]["evaluate_every_env_frames"] = 1_000
        config = run_config.parse(values)
        spec = factory.environment_spec(config.environment)
        trained = fleet.Fleet(config, self._folder, spec, None)
        trained.run(mock.Mock(stop=True), mock.Mock())
        self.assertEqual(trained.unsaved, ["replay"])
        self.assertLess(self._end.call_args_list[0].args[-1], 60.0)
        self.assertEqual(
            [
                [role.name for role in group]
                for call in self._end.call_args_list
                for group in call.args[0]
            ],
            [["actor_00", "actor_01"], ["learner", "learner_1"], ["replay"]],
        )
        self._made["evaluator"].release.assert_called_once_with()


if __name__ == "__main__":
    absltest.main()
