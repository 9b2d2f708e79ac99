"""Tests of leases of queues, on a real server."""

import pathlib
import tempfile
import threading
import time

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.replay import connection, lease, server, standalone
from laser_tf.replay.schemes import base, mixed
from testing import fakes, messages

SIGNATURE = fakes.signature(fakes.image_spec((4, 3, 1), 3), (), unroll_length=5, frame_stack=2)
CONFIG = mixed.Mixed(unroll_length=5, frame_stack=2, batch_size=4)
NEVER_STALE_SECONDS = 60.0


class LeaseTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._directory = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._server = standalone.start(CONFIG, SIGNATURE, self._directory, 0, [base.QUEUE])
        self.addCleanup(self._server.stop)

    def _lease(self, run: str, stale_seconds: float, heartbeat_seconds: float = 0.1) -> lease.Lease:
        return lease.Lease(self._server.connect(), run, heartbeat_seconds, stale_seconds)

    def _keep(self, run: str) -> connection.ReplayConnection:
        """Acquires a lease and renews it; returns the connection of its keeper."""
        connected = self._server.connect()
        acquired = lease.Lease(connected, run, 0.1, NEVER_STALE_SECONDS)
        acquired.acquire()
        self._keeper = lease.LeaseKeeper(connected, acquired)
        self.addCleanup(self._keeper.release)
        return connected

    def test_second_run_is_rejected_while_the_first_renews(self):
        self._keep("host:/runs/a")
        with messages.raises(lease.LeaseTakenError, self._server.address, "host:/runs/a"):
            self._lease("host:/runs/b", NEVER_STALE_SECONDS).acquire()
        self._keeper.release()
        self._lease("host:/runs/b", NEVER_STALE_SECONDS).acquire()

    def test_stale_lease_is_taken_over(self):
        self._lease("dead", NEVER_STALE_SECONDS).acquire()
        self._lease("next", stale_seconds=0.5).acquire()

    @parameterized.parameters("run", "host:/" + 300 * "x", "h:" + 299 * "ä")
    def test_resumed_run_acquires_its_lease_at_once(self, run):
        for _ in range(2):
            start = time.monotonic()
            self._lease(run, NEVER_STALE_SECONDS).acquire()
            self.assertLess(time.monotonic() - start, 30)

    def test_lease_released_in_the_meantime_is_acquired(self):
        ending = self._lease("ending", NEVER_STALE_SECONDS)
        ending.acquire()
        timer = threading.Timer(0.5, ending.release)
        timer.start()
        self.addCleanup(timer.join)
        start = time.monotonic()
        self._lease("next", NEVER_STALE_SECONDS).acquire()
        self.assertLess(time.monotonic() - start, 30)

    def test_long_names_that_differ_at_the_start_are_different_runs(self):
        self._keep("a:/" + 300 * "x")
        with self.assertRaises(lease.LeaseTakenError):
            self._lease("b:/" + 300 * "x", NEVER_STALE_SECONDS).acquire()

    def test_keeper_rejects_the_server_after_a_takeover(self):
        connected = self._keep("slow")
        other = self._lease("other", stale_seconds=0.0)
        deadline = time.monotonic() + 20
        with messages.raises(lease.LeaseTakenError, "other"):
            while time.monotonic() < deadline:
                other.renew()
                connected.raise_if_rejected()
                time.sleep(0.02)

    def test_server_of_a_run_is_rejected(self):
        served = server.ReplayServer(CONFIG, SIGNATURE, self._directory / "run")
        self.addCleanup(served.stop)
        with messages.raises(errors.ConfigError, served.address, "launch.replay_server"):
            lease.Lease(served.connect(), "run").acquire()


if __name__ == "__main__":
    absltest.main()
