"""Tests of the launcher: its network, exit codes, and the ends of processes."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

from absl.testing import absltest

from laser_tf.host import process_launcher
from testing import commands, processes

# Moves to a private network, then has two processes connect to a server outside: one of its own,
# and one of a child. Prints their exit codes and its own success.
_MOVED = """
import os, subprocess, sys
from laser_tf.host import private_network, process_launcher
connect = "import socket; socket.create_connection(('127.0.0.1', PORT), timeout=5)"
def launch():
    null = os.open(os.devnull, os.O_RDWR)
    command = [sys.executable, "-c", connect]
    return process_launcher.LaunchedProcess(command, dict(os.environ), [null]).wait(60.0)
if sys.argv[1:] == ["child"]:
    print(launch(), flush=True)
    sys.exit()
print(private_network.enter() is None, flush=True)
print(launch(), flush=True)
subprocess.run([sys.executable, "-c", PROGRAM, "child"])
print(subprocess.run([sys.executable, "-c", connect], stderr=subprocess.DEVNULL).returncode)
"""
_OWNER = """
import os, sys, time
from laser_tf.host import process_launcher
command = ["/bin/sh", "-c", "sleep 1000 & echo $!; sleep 1000"]
process = process_launcher.LaunchedProcess(command, dict(os.environ), [1])
time.sleep(1000)
"""


class ProcessLauncherTest(absltest.TestCase):
    def _launch(self, *command):
        with pathlib.Path(os.devnull).open("wb") as output:
            return process_launcher.LaunchedProcess(command, dict(os.environ), [output.fileno()])

    def test_exit_code_is_reported(self):
        process = self._launch("/bin/sh", "-c", "exit 7")
        self.assertEqual(process.wait(60.0), 7)
        self.assertEqual(process.wait(), 7)
        process.end(0.0)

    def test_running_process_can_be_awaited_and_ended(self):
        process = self._launch("sleep", "1000")
        self.assertIsNone(process.wait(0.0))
        self.assertIsNone(process.wait(0.1))
        process.end(0.0)
        self.assertEqual(process.wait(), -signal.SIGKILL)
        self.assertFalse(processes.is_running(process.pid))

    def test_missing_program_raises(self):
        with self.assertRaises(FileNotFoundError):
            self._launch("/no/such/program")

    def test_launcher_that_was_killed_is_replaced(self):
        process = self._launch("sleep", "1000")
        self.addCleanup(shutil.rmtree, pathlib.Path(process_launcher._own_path).parent)
        launcher = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(launcher[1]), signal.SIGKILL)
        self.assertEqual(process.wait(60.0), -signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
        self.assertEqual(self._launch("true").wait(60.0), 0)

    def test_process_group_ends_with_a_killed_owner(self):
        owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True)
        pid = int(owner.stdout.readline())
        self.assertTrue(processes.is_running(pid))
        owner.kill()
        owner.communicate()
        processes.wait_for_end([pid])

    def test_launched_processes_keep_the_network_of_the_host(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            program = _MOVED.replace("PORT", str(server.getsockname()[1]))
            program = f"PROGRAM = {program!r}\n{program}"
            output = commands.run_program(program, check=True).stdout
        moved, launched, of_child, own = output.split()
        self.assertEqual((launched, of_child), ("0", "0"))
        self.assertEqual(own != "0", moved == "True")


if __name__ == "__main__":
    absltest.main()
