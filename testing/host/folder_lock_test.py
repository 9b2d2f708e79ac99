"""A folder belongs to one process, until that process ends however it does."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

from absl.testing import absltest

from laser_tf.host import folder_lock
from testing import messages

PROGRAM = """
import pathlib, subprocess, sys, time
from laser_tf.host import folder_lock
folder_lock.hold(pathlib.Path(sys.argv[1]))
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], close_fds=False)
print(child.pid, flush=True)
time.sleep(100)
"""


class FolderLockTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._path = pathlib.Path(folder.name) / folder_lock.FILE

    def _start_owner(self) -> subprocess.Popen:
        """Another process that holds the lock, and has a child that outlives it."""
        owner = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self._path)], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(owner.stdout.close)
        self.addCleanup(owner.wait)
        self.addCleanup(owner.kill)
        self.addCleanup(os.kill, int(owner.stdout.readline()), signal.SIGKILL)
        return owner

    def test_who_has_the_folder_is_named(self):
        owner = self._start_owner()
        with messages.raises(folder_lock.InUseError, self._path.parent, owner.pid, "--workdir"):
            folder_lock.hold(self._path)

    def test_one_that_is_killed_leaves_it_to_the_next(self):
        owner = self._start_owner()
        owner.kill()
        owner.wait()
        folder_lock.hold(self._path)
        self.assertIn(f"process {os.getpid()} ", self._path.read_text())

    def test_one_that_is_ending_is_waited_for(self):
        owner = self._start_owner()
        threading.Timer(0.5, owner.kill).start()
        with self.assertLogs(level="INFO") as logs:
            folder_lock.hold(self._path, patience_seconds=30)
        self.assertLen(logs.output, 1)
        messages.assert_names(logs.output[0], self._path.parent)


if __name__ == "__main__":
    absltest.main()
