"""Tests of the order and the failures of saves."""

import contextlib
import pathlib
from unittest import mock

from absl.testing import absltest

from laser_tf.training import learner, named_variables, run_config, saver
from laser_tf.workdir import lock, run_directory
from testing import messages

_FULL = "chunks.tfrecord; No space left on device"
_CONFIG = run_config.Config(checkpoint_minutes=1.0, replay_checkpoint_minutes=10.0)
_WEIGHTS, _REPLAY = "checkpoints.save", "replay.checkpoint"


class SaverTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._calls = mock.Mock()
        self._checkpoints, self._replay = self._calls.checkpoints, self._calls.replay
        self._mark = self.enter_context(mock.patch.object(run_directory, "mark_checkpointed"))
        self._minutes = 0.0
        self._counters = learner.Counters()
        self._saver = saver.Saver(
            _CONFIG,
            pathlib.Path("run"),
            self._checkpoints,
            self._replay,
            self._counters,
            self._saving,
            self._calls.write_logs,
            clock=lambda: 60 * self._minutes,
        )

    @contextlib.contextmanager
    def _saving(self):
        self._calls.enter()
        yield
        self._calls.leave()

    def _pass(self, minutes: float) -> list[str]:
        """Lets minutes pass; returns what is saved then."""
        self._calls.reset_mock()
        self._minutes += minutes
        self._saver.save_when_due()
        return self._called()

    def _called(self) -> list[str]:
        names = [name for name, _, _ in self._calls.method_calls]
        return [name for name in names if name in (_WEIGHTS, _REPLAY)]

    def test_weights_are_saved_often_and_before_replay(self):
        self.assertEmpty(self._pass(0.5))
        self.assertEqual(self._pass(0.5), [_WEIGHTS])
        self.assertEmpty(self._pass(0.5))
        self.assertEqual(self._pass(9.0), [_WEIGHTS, _REPLAY])
        self.assertEqual(self._counters.wall_seconds.numpy(), 630.0)

    def test_logs_are_written_first_and_replay_in_its_context(self):
        self._saver.save_all()
        names = [name for name, _, _ in self._calls.method_calls]
        self.assertEqual(names, ["write_logs", _WEIGHTS, "enter", _REPLAY, "leave"])

    def test_weights_that_are_made_due_are_saved_once(self):
        self._saver.save_weights_next()
        self.assertEqual(self._pass(0.0), [_WEIGHTS])
        self.assertEmpty(self._pass(0.0))

    def test_full_disk_and_its_end_are_logged_once(self):
        self._checkpoints.save.side_effect = run_directory.WorkdirError("no space for weights")
        self._replay.checkpoint.side_effect = RuntimeError(_FULL)
        with self.assertLogs(level="INFO") as logs:
            for _ in range(3):  # Replay is not saved without weights.
                self.assertEqual(self._pass(10.0), [_WEIGHTS])
            self._checkpoints.save.side_effect = None
            for _ in range(2):
                self.assertEqual(self._pass(10.0), [_WEIGHTS, _REPLAY])
            self._replay.checkpoint.side_effect = None
            self._pass(10.0)
        levels = [record.levelname for record in logs.records]
        self.assertEqual(levels, ["WARNING", "INFO"] * 2)
        messages.assert_names(logs.output[0], "no space for weights")
        messages.assert_names(logs.output[2], _FULL)

    def test_replay_is_saved_soon_after_failed_weights(self):
        self._checkpoints.save.side_effect = run_directory.WorkdirError("no space for weights")
        with self.assertLogs(level="WARNING"):
            self._pass(10.0)
        self._checkpoints.save.side_effect = None
        self.assertEqual(self._pass(1.0), [_WEIGHTS, _REPLAY])

    def test_lost_directory_raises_and_saves_nothing(self):
        self.enter_context(mock.patch.object(lock, "check", side_effect=lock.LostError("renamed")))
        self._minutes = 10.0
        for save in (self._saver.save_when_due, self._saver.save_all):
            with self.assertRaises(lock.LostError):
                save()
        self.assertEmpty(self._called())

    def test_failed_last_save_of_weights_raises(self):
        self._checkpoints.save.side_effect = run_directory.WorkdirError("no space")
        with messages.raises(run_directory.WorkdirError, "no space"):
            self._saver.save_all()

    def test_last_save_is_repeated_until_it_works_or_a_stop(self):
        failure = run_directory.WorkdirError("no space")
        sleep = self.enter_context(mock.patch.object(saver.time, "sleep"))
        self._checkpoints.save.side_effect = (failure, failure, pathlib.Path("checkpoint-7"))
        with self.assertLogs(level="INFO") as logs:
            saved = self._saver.save_all(lambda: False)
        self.assertEqual(saved, pathlib.Path("checkpoint-7"))
        self.assertEqual([record.levelname for record in logs.records], ["WARNING", "INFO"])
        self._checkpoints.save.side_effect = failure
        should_stop = mock.Mock(side_effect=(False, True))
        with self.assertLogs(), messages.raises(run_directory.WorkdirError, "no space"):
            self._saver.save_all(should_stop)
        self.assertEqual(sleep.call_count, 3)

    def test_failed_last_save_of_replay_is_logged(self):
        self._replay.checkpoint.side_effect = RuntimeError(_FULL)
        with messages.warns(_FULL):
            self._saver.save_all()
        self._checkpoints.save.assert_called_once()

    def test_weights_that_are_not_finite_raise_and_save_no_replay(self):
        self._checkpoints.save.side_effect = named_variables.NonFiniteWeightsError("kernel")
        self._minutes = 10.0
        for save in (self._saver.save_when_due, self._saver.save_all):
            with self.assertRaises(named_variables.NonFiniteWeightsError):
                save()
        self._replay.checkpoint.assert_not_called()

    def test_first_checkpoint_is_recorded_after_a_failure(self):
        self._mark.side_effect = run_directory.WorkdirError("no space")
        self._saver.save_all()
        self._mark.side_effect = None
        self._saver.save_all()
        self.assertEqual(self._mark.call_args_list, 2 * [mock.call(pathlib.Path("run"))])


if __name__ == "__main__":
    absltest.main()
