"""Tests of leases of queues, on a real server."""

import threading
import time

from absl.testing import absltest, parameterized

from laser_tf.replay import lease, server
from laser_tf.replay.schemes import mixed
from testing import fakes, folders, messages, processes

SIGNATURE = fakes.signature(fakes.image_spec((4, 3, 1), 3), (), unroll_length=5, frame_stack=2)
CONFIG = mixed.Mixed(unroll_length=5, frame_stack=2, batch_size=4)
NEVER_SECONDS = 60.0


class LeaseTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._server = server.ReplayServer(CONFIG, SIGNATURE, self._folder / "r", is_external=True)
        self.addCleanup(self._server.stop)

    def _acquire(
        self, run: str, stale_seconds: float = NEVER_SECONDS, heartbeat_seconds: float = 0.1
    ) -> lease.Lease:
        self._connection = self._server.connect()
        acquired = lease.Lease(self._connection, run, heartbeat_seconds, stale_seconds)
        self.addCleanup(acquired.release)
        return acquired

    @parameterized.parameters("run", "host:/" + 3000 * "ä")
    def test_second_run_is_rejected_while_the_first_renews(self, run):
        first = self._acquire(run)
        with messages.raises(lease.LeaseTakenError, self._server.address, run):
            self._acquire("other")
        self._acquire(run)  # The resumed run is not rejected.
        first.release()

    def test_stale_lease_is_taken_over(self):
        self._acquire("dead", heartbeat_seconds=NEVER_SECONDS)
        self._acquire("next", stale_seconds=0.5)

    def test_released_lease_is_acquired_at_once(self):
        ending = self._acquire("ending", heartbeat_seconds=NEVER_SECONDS)
        timer = threading.Timer(0.5, ending.release)
        timer.start()
        self.addCleanup(timer.join)
        start = time.monotonic()
        self._acquire("next")
        self.assertLess(time.monotonic() - start, NEVER_SECONDS / 2)

    def test_takeover_rejects_the_server(self):
        self._acquire("slow")
        slow = self._connection
        self._acquire("other", stale_seconds=0.0, heartbeat_seconds=0.01)
        with messages.raises(lease.LeaseTakenError, "other"):
            processes.wait_until(slow.raise_if_rejected, 30.0)


if __name__ == "__main__":
    absltest.main()
