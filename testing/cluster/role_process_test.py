"""The process of a role, without Ray."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from laser_tf.cluster import role_process
from laser_tf.host import versions


class _Ended(role_process.Role):
    """As replay: its server answers nobody once it has ended."""

    def __init__(self, context: role_process.Context):
        self._context = context

    def run(self) -> str:
        return role_process.TOLD

    def metrics(self) -> dict[str, float]:
        raise RuntimeError("Socket closed")


class RoleProcessTest(absltest.TestCase):
    def test_a_role_without_metrics_is_heard_of_and_ends_as_it_says(self):
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.enter_context(mock.patch.object(role_process, "log_to"))
        self.enter_context(mock.patch.object(role_process, "role_metrics")).of_process = dict
        self.enter_context(mock.patch.object(role_process.threading, "Thread"))
        self.enter_context(mock.patch.object(role_process.RoleProcess, "_stop_on_signals"))
        self.enter_context(mock.patch.object(role_process, "ray"))
        hub = mock.Mock()
        process = role_process.RoleProcess("replay", f"{__name__}:_Ended", {}, folder, hub, {})
        self.assertEqual(process.run(versions.of_machine()), role_process.TOLD)
        name, health, *_ = hub.report.remote.call_args.args
        self.assertEqual((name, health.state, health.metrics), ("replay", role_process.ENDED, {}))


if __name__ == "__main__":
    absltest.main()
