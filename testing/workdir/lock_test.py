"""Tests of the lock of a directory."""

import os
import shutil
import signal
import subprocess
import sys
import threading

from absl.testing import absltest, parameterized

from laser_tf.workdir import lock
from testing import folders, messages

PROGRAM = """
import pathlib, subprocess, sys, time
from laser_tf.workdir import lock
lock.acquire(pathlib.Path(sys.argv[1]))
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], close_fds=False)
print(child.pid, flush=True)
time.sleep(100)
"""


class FolderLockTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._path = self._folder / lock.FILE

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

    def test_owner_of_the_directory_is_named(self):
        owner = self._start_owner()
        with messages.raises(lock.InUseError, self._path.parent, owner.pid, "--workdir"):
            lock.acquire(self._path)

    def test_killed_owner_releases_the_lock(self):
        owner = self._start_owner()
        owner.kill()
        owner.wait()
        lock.acquire(self._path)
        self.assertIn(f"process {os.getpid()} ", self._path.read_text())

    def test_lock_is_acquired_when_its_owner_ends(self):
        owner = self._start_owner()
        threading.Timer(0.5, owner.kill).start()
        with self.assertLogs(level="INFO") as logs:
            lock.acquire(self._path, patience_seconds=30)
        self.assertLen(logs.output, 1)
        messages.assert_names(logs.output[0], self._path.parent)

    def test_held_lock_passes_the_check(self):
        lock.check(self._path.parent)  # A directory without a lock passes, too.
        lock.acquire(self._path)
        with self.assertNoLogs():
            lock.check(self._path.parent)

    @parameterized.parameters("rename", "rename and replace", "delete", "delete and replace")
    def test_lost_directory_is_detected(self, how):
        folder, moved = self._path.parent / "run", self._path.parent / "moved"
        folder.mkdir()
        lock.acquire(folder / lock.FILE)
        if "rename" in how:
            folder.rename(moved)
        else:
            shutil.rmtree(folder)
        if "replace" in how:
            folder.mkdir()
        with self.assertRaises(lock.LostError) as caught:
            lock.check(folder)
        self.assertIn(str(folder), str(caught.exception))
        self.assertEqual("rename" in how, str(moved) in str(caught.exception))
        self.assertEqual(folder.exists(), "replace" in how)


if __name__ == "__main__":
    absltest.main()
