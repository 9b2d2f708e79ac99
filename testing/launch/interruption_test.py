"""Signals are heard once or often, and what is being saved is not ended by them."""

import os
import signal
import threading
from unittest import mock

from absl.testing import absltest

from launch import interruption, session
from testing import fakes

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class InterruptionTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        for signal_number in SIGNALS:
            self.addCleanup(signal.signal, signal_number, signal.getsignal(signal_number))

    def test_a_second_ctrl_c_hurries_and_no_number_of_sigterms(self):
        interrupted = interruption.Interruption()
        self.assertFalse(interrupted.stop)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
            self.assertTrue(interrupted.stop)
            self.assertFalse(interrupted.hurry)
        os.kill(os.getpid(), signal.SIGINT)
        self.assertTrue(interrupted.hurry)

    def test_the_first_ctrl_c_waits(self):
        interrupted = interruption.Interruption()
        os.kill(os.getpid(), signal.SIGINT)
        self.assertTrue(interrupted.stop)
        self.assertFalse(interrupted.hurry)

    def test_a_run_that_is_told_often_to_end_saves_itself(self):
        run = mock.Mock(finished=False, env_frames=0)
        run.returns.mean_return.return_value = 0.0

        def train(stop: threading.Event, _: object) -> None:
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGTERM)
            self.assertTrue(stop.is_set())
            run.saved = True

        run.run = train
        session.run_to_the_end(run, fakes.catch_config(), None)
        self.assertTrue(run.saved)
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_IGN)

    def test_an_evaluation_has_nothing_to_save(self):
        run = mock.Mock(finished=True, env_frames=0)
        found = []
        with mock.patch.object(
            session, "_evaluate", lambda *_: found.extend(map(signal.getsignal, SIGNALS))
        ):
            session.run_to_the_end(run, fakes.catch_config(), None)
        self.assertEqual(found, [signal.SIG_DFL, signal.SIG_DFL])


if __name__ == "__main__":
    absltest.main()
