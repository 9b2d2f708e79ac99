"""Tests of signals that ask the process to end."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import threading
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.evaluation import run_evaluation
from laser_tf.host import interruption
from launch import session
from testing import fakes, processes

ENDS = """from laser_tf.host import interruption
print("saved")
interruption.end_by({})"""
WAITS = """import time
from laser_tf.host import interruption
interrupted = interruption.Interruption()
print("ready", flush=True)
while not interrupted.stop_requested:
    time.sleep(0.05)
print("saved")
interruption.end_by(interrupted.signal_number)"""


class InterruptionTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        processes.keep_handlers(self)

    @parameterized.parameters(signal.SIGTERM, signal.SIGHUP)
    def test_only_a_second_ctrl_c_requests_a_kill(self, signal_number):
        interrupted = interruption.Interruption()
        self.assertFalse(interrupted.stop_requested)
        for _ in range(3):
            os.kill(os.getpid(), signal_number)
            self.assertTrue(interrupted.stop_requested)
            self.assertFalse(interrupted.kill_requested)
        os.kill(os.getpid(), signal.SIGINT)
        self.assertTrue(interrupted.kill_requested)
        self.assertEqual(interrupted.signal_number, signal_number)  # the first
        interrupted = interruption.Interruption()
        os.kill(os.getpid(), signal.SIGINT)
        self.assertTrue(interrupted.stop_requested)
        self.assertFalse(interrupted.kill_requested)

    @parameterized.parameters(*processes.STOP_SIGNALS)
    def test_signal_raises_if_there_is_nothing_to_save(self, signal_number):
        interrupted = interruption.Interruption()
        with interrupted.raising():
            pass
        noting = [signal.getsignal(each) for each in processes.STOP_SIGNALS]
        self.assertEqual(noting, [interrupted._note] * 3)
        with self.assertRaises(interruption.Stopped) as stopped, interrupted.raising():
            os.kill(os.getpid(), signal_number)
            self.fail("not raised")
        self.assertEqual(stopped.exception.signal_number, signal_number)
        self.assertEqual(interrupted.signal_number, signal_number)  # a library may eat the first
        self.assertEqual(
            [signal.getsignal(each) for each in processes.STOP_SIGNALS], [signal.SIG_DFL] * 3
        )
        with self.assertRaises(interruption.Stopped), interrupted.raising():
            self.fail("begun although a signal had come")

    def test_handler_of_sigterm_survives_a_library(self):
        came = []
        signal.signal(signal.SIGTERM, lambda *_: came.append(1))

        def work() -> None:
            with interruption.keeping_sigterm():
                ctypes.CDLL(None).signal(signal.SIGTERM, 1)  # as TensorFlow's: it is ignored

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(came, [1])

    def test_nohup_keeps_hangups_ignored(self):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        interruption.Interruption()
        self.assertEqual(signal.getsignal(signal.SIGHUP), signal.SIG_IGN)
        interruption.restore_default_handlers()
        self.assertEqual(signal.getsignal(signal.SIGHUP), signal.SIG_IGN)

    @parameterized.parameters(*processes.STOP_SIGNALS)
    def test_exit_status_names_the_signal(self, signal_number):
        process = subprocess.run(
            ["bash", "-c", f"'{sys.executable}' -c '{ENDS.format(int(signal_number))}'; echo $?"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.assertEqual(process.stdout, f"saved\n{128 + signal_number}\n")
        self.assertNotIn("Traceback", process.stderr)

    def test_ctrl_c_ends_the_loop_of_a_shell(self):
        """As a terminal sends it: to the shell and to its command."""
        command = f"'{sys.executable}' -c '{WAITS}'"
        shell = subprocess.Popen(
            ["bash", "-c", f"for seed in 1 2 3; do echo $seed; {command}; done; echo over"],
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        lines = [shell.stdout.readline() for _ in range(2)]
        os.killpg(shell.pid, signal.SIGINT)
        output, _ = shell.communicate(timeout=60)
        self.assertEqual(("".join(lines), output), ("1\nready\n", "saved\n"))

    def test_first_process_of_a_container_ends(self):
        with mock.patch.object(os, "kill"), mock.patch.object(os, "_exit") as ended:
            interruption.end_by(signal.SIGTERM)
        ended.assert_called_once_with(143)

    def test_evaluation_has_default_handlers(self):
        run = mock.Mock(finished=True, env_frames=0)
        found = []
        with mock.patch.object(
            run_evaluation,
            "evaluate_finished",
            lambda *_: found.extend(map(signal.getsignal, processes.STOP_SIGNALS)),
        ):
            session.train_and_evaluate(run, fakes.catch_config(), pathlib.Path("nowhere"))
        self.assertEqual(found, [signal.SIG_DFL] * 3)


if __name__ == "__main__":
    absltest.main()
