"""The monitor of Ray's processes, without Ray."""

import socket
from unittest import mock

from absl.testing import absltest

from laser_tf.cluster import machines
from testing import messages


class RayMonitorTest(absltest.TestCase):
    def test_lost_head_is_logged_once_and_lost_machine_raises(self):
        ray = self.enter_context(mock.patch.object(machines, "ray"))
        ray.get_runtime_context.return_value.get_node_id.return_value = "here"
        ray.nodes.return_value = [{"NodeID": "here", "Alive": True}]
        with socket.create_server(("127.0.0.1", 0)) as head:
            address = f"127.0.0.1:{head.getsockname()[1]}"
            ray.get_runtime_context.return_value.gcs_address = address
            monitor = machines.RayMonitor()
            with self.assertNoLogs(level="WARNING"):
                monitor.check()
            ray.nodes.return_value[0]["Alive"] = False
            with self.assertRaises(machines.RayLostError):
                monitor.check()
        with messages.warns():
            for _ in range(3):
                monitor.check()


if __name__ == "__main__":
    absltest.main()
