"""What a run's folder says of its roles, without Ray."""

import csv
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from laser_tf.cluster import hub, roles


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


if __name__ == "__main__":
    absltest.main()
