"""Folders of Rays: killed commands leave none for long, failed commands keep their logs."""

import pathlib
import subprocess
import sys
import tempfile

from absl.testing import absltest

from laser_tf.cluster import ray_folder

_COMMAND = """
import sys
from laser_tf.cluster import ray_folder
with ray_folder.opened(sys.argv[1]):
    print(flush=True)
    sys.stdin.read()
"""


class RayFolderTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._parent = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def _start_command(self) -> subprocess.Popen:
        """Starts a command that has a folder open until its input ends."""
        command = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, self._parent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(command.communicate)
        command.stdout.readline()
        return command

    def _open(self) -> None:
        with ray_folder.opened(self._parent):
            pass

    def test_next_command_removes_folder_of_killed_command(self):
        command = self._start_command()
        command.kill()
        command.wait()
        self.assertLen(list(self._parent.iterdir()), 1)
        self._open()
        self.assertEmpty(list(self._parent.iterdir()))

    def test_next_command_keeps_folder_of_running_command(self):
        self._start_command()
        self._open()
        self.assertLen(list(self._parent.iterdir()), 1)

    def test_next_command_keeps_folder_of_failed_command(self):
        with self.assertRaises(OSError), ray_folder.opened(self._parent):
            raise OSError
        self._open()
        self.assertLen(list(self._parent.iterdir()), 1)

    def test_next_command_keeps_folder_of_running_processes(self):
        command = self._start_command()
        command.kill()
        command.wait()
        (folder,) = self._parent.iterdir()
        code = "import sys; print(flush=True); sys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, f"--temp-dir={folder}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(process.communicate)
        process.stdout.readline()
        self._open()
        self.assertTrue(folder.exists())


if __name__ == "__main__":
    absltest.main()
