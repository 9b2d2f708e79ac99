"""A terminal that is closed, and Ctrl-C before anything is there to be saved."""

import fcntl
import os
import pathlib
import pty
import signal
import subprocess
import sys
import termios
import time

import pytest
from absl.testing import absltest, parameterized

from testing import commands, folders, processes

CATCH = "--config=configs/laser.py:catch"
COMMANDS = [
    path
    for path in (pathlib.Path(__file__).resolve().parents[2] / "launch").glob("*.py")
    if 'if __name__ == "__main__"' in path.read_text()
]


def _start_in_terminal(*arguments: str) -> tuple[subprocess.Popen, int]:
    """Starts `python -m` in a terminal of its own; returns the terminal's other end, too."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    return process, ours


class ClosedTerminalTest(folders.FolderTest):
    def _train(self) -> tuple[subprocess.Popen, int]:
        process, terminal = _start_in_terminal(
            "launch.train", CATCH, "--config.run.env_frames=10000000", f"--workdir={self._workdir}"
        )
        self.addCleanup(process.kill)
        shown = b""
        while b"frames" not in shown:
            shown += os.read(terminal, 4096)
        return process, terminal

    def test_closed_terminal_saves_the_run(self):
        process, terminal = self._train()
        os.close(terminal)  # the system sends SIGHUP, and output fails from now on
        self.assertEqual(process.wait(timeout=120), -signal.SIGHUP)
        self.assertNotEmpty(list((self._workdir / "checkpoints/learner").iterdir()))
        self.assertNotEmpty(list((self._workdir / "checkpoints/replay").iterdir()))
        self.assertGreater(len((self._workdir / "episodes.csv").read_text().splitlines()), 2)

    @pytest.mark.long
    def test_nohup_run_continues_until_sigterm(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup: a child inherits it
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        process, terminal = self._train()
        os.close(terminal)
        length = _length(self._workdir / "episodes.csv")
        processes.wait_until(
            lambda: _length(self._workdir / "episodes.csv") > length, process=process
        )
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=120), -signal.SIGTERM)
        self.assertNotEmpty(list((self._workdir / "checkpoints/learner").iterdir()))


def _length(path: pathlib.Path) -> int:
    return path.stat().st_size if path.exists() else 0


class EarlyInterruptTest(parameterized.TestCase):
    def test_every_command_handles_an_interrupt_of_its_imports(self):
        self.assertGreaterEqual(len(COMMANDS), 8)
        for path in COMMANDS:
            main = path.read_text().index('if __name__ == "__main__"')
            before, *_ = path.read_text()[main:].partition("\nimport ")
            self.assertIn("interruption.before_imports()", before, path.name)

    @parameterized.parameters(("sweep", 0.7), ("train", 0.7), ("train", 2.5))
    def test_ctrl_c_during_the_start_prints_no_traceback(self, name, seconds):
        process = commands.start(name, *([CATCH] if name == "train" else []))
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        if "frames" in output:  # it was quick, and trained already: that is saved
            self.assertEqual((process.returncode, name), (-signal.SIGINT, "train"))
            return
        self.assertEqual(output, "")
        if process.returncode != -signal.SIGINT:  # it was quicker, and had a flag to refuse
            self.assertStartsWith(errors, "error: ")
        for folder in ("/launch/", "/laser_tf/"):  # what Python itself says before is not ours
            self.assertNotIn(folder, errors)
        if "frozen runpy" not in errors:
            self.assertNotIn("Traceback", errors)


if __name__ == "__main__":
    absltest.main()
