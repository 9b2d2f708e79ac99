"""Roles that wait for a machine, versions that differ, and a lost head, without Ray."""

import socket
from unittest import mock

import ray
from absl.testing import absltest

from laser_tf.cluster import machines, ray_session, supervision
from testing import messages

_NODES = {"near": "aa" * 28, "far": "bb" * 28, "gone": "cc" * 28}  # Ray's ids.


def _role(name: str, required: bool = False) -> mock.Mock:
    role = mock.Mock(required=required)
    role.name = name
    return role


class PlacementTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._learner = _role("learner", required=True)
        self._actors = [_role("actor_00"), _role("actor_01")]
        self._make(0.0)

    def _make(self, wait_minutes: float) -> None:
        self._minutes = 0.0
        self._placement = machines.Placement(wait_minutes, clock=lambda: 60 * self._minutes)

    def _check(self, minutes: float, *placed: str) -> None:
        self._minutes = minutes
        self._placement.check([self._learner, *self._actors], placed, [self._actors])

    def test_restarted_state_ends_no_run(self):
        self._check(1, "learner", "actor_00", "actor_01")
        self._check(30)
        self._check(31, "actor_01")

    def test_required_role_without_a_machine_ends_the_run(self):
        with self.assertLogs(level="INFO") as logs:
            self._check(3, "actor_00")
        messages.assert_names(logs.output[0], "learner", "actor_01")
        with messages.raises(
            supervision.RoleFailedError, 6, "learner", "actor_01", "cluster.wait_minutes"
        ):
            self._check(6, "actor_00")

    def test_group_needs_one_role(self):
        self._check(30, "learner", "actor_01")
        self._make(0.0)
        with messages.raises(supervision.RoleFailedError, "actor_00", "actor_01"):
            self._check(60, "learner")

    def test_wait_minutes_extend_the_limit(self):
        self._make(20.0)
        self._check(19)
        with self.assertRaises(supervision.RoleFailedError):
            self._check(21)


class VersionsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._ray = self.enter_context(mock.patch.object(machines, "ray"))
        self._ray.exceptions = ray.exceptions
        self._alive = {"near": True, "far": True, "gone": False}
        self._ray.nodes = lambda: [
            {"NodeID": _NODES[name], "NodeManagerHostname": name, "Alive": alive}
            for name, alive in self._alive.items()
        ]
        look = self._ray.remote.return_value.return_value.options
        look.side_effect = lambda scheduling_strategy: mock.Mock(
            remote=lambda _: scheduling_strategy.node_id
        )
        self._answers = {_NODES["near"]: "", _NODES["far"]: ""}
        self._ray.get = self._get

    def _get(self, node: str) -> str:
        answer = self._answers[node]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def test_machines_that_are_like_this_one_are_taken(self):
        machines.check_versions()

    def test_one_that_differs_is_named(self):
        self._answers[_NODES["far"]] = "numpy 1.0 instead of 1.26.4"
        with messages.raises(ray_session.ClusterError, "far", "numpy", "1.0", "1.26.4"):
            machines.check_versions()

    def test_one_without_the_project_is_named(self):
        self._answers[_NODES["far"]] = ray.exceptions.RaySystemError("No module named 'laser_tf'")
        with messages.raises(ray_session.ClusterError, "far"):
            machines.check_versions()

    def test_one_that_dies_meanwhile_is_not_held_against_the_run(self):
        def die(node: str) -> str:
            if node == _NODES["far"]:
                self._alive["far"] = False
                raise ray.exceptions.TaskUnschedulableError("the node does not exist any more")
            return ""

        self._ray.get = die
        machines.check_versions()


class HeadMonitorTest(absltest.TestCase):
    def test_lost_head_is_logged_once(self):
        with (
            socket.create_server(("127.0.0.1", 0)) as head,
            mock.patch.object(machines, "ray") as ray_,
        ):
            address = f"127.0.0.1:{head.getsockname()[1]}"
            ray_.get_runtime_context.return_value.gcs_address = address
            monitor = machines.HeadMonitor()
            with self.assertNoLogs(level="ERROR"):
                monitor.check()
        with self.assertLogs(level="ERROR") as logs:
            for _ in range(3):
                monitor.check()
        self.assertLen(logs.output, 1)


if __name__ == "__main__":
    absltest.main()
