"""When weights and replay are saved, in which order, and what a full disk does."""

import contextlib
import logging
import pathlib
from unittest import mock

from absl.testing import absltest

from laser_tf.training import finiteness, learner, run_config, saver
from laser_tf.workdir import lock, run_directory

_FULL = "chunks.tfrecord; No space left on device"


class SaverTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._calls = mock.Mock()
        self._checkpoints, self._replay = self._calls.checkpoints, self._calls.replay
        self._note = self.enter_context(mock.patch.object(run_directory, "mark_checkpointed"))
        self._saving = saver.Saver(
            run_config.Config(),
            pathlib.Path("run"),
            self._checkpoints,
            self._replay,
            learner.Counters(),
        )

    def test_whoever_waits_is_told_while_replay_is_saved(self):
        told = []

        @contextlib.contextmanager
        def saving():
            told.append("begins")
            yield
            told.append("ends")

        self._replay.checkpoint.side_effect = lambda: told.append("saves")
        folder, parts = pathlib.Path("run"), (self._checkpoints, self._replay, learner.Counters())
        saver.Saver(run_config.Config(), folder, *parts, saving).save_all()
        self.assertEqual(told, ["begins", "saves", "ends"])

    def test_the_episodes_of_what_weights_have_learned_are_written_before_them(self):
        parts = (self._checkpoints, self._replay, learner.Counters(), contextlib.nullcontext)
        saving = saver.Saver(
            run_config.Config(), pathlib.Path("run"), *parts, self._calls.flush_logs
        )
        self._calls.flush_logs.return_value = {"episodes.csv": 7}
        saving.make_weights_due()
        saving.save_when_due()
        self.assertEqual(self._called(), ["flush_logs", "checkpoints.save"])
        self._checkpoints.save.assert_called_once_with(0, {"episodes.csv": 7})

    def _make_replay_due(self) -> None:
        self._saving._next_replay = 0.0

    def _called(self) -> list[str]:
        return [name for name, _, _ in self._calls.method_calls]

    def test_weights_that_are_made_due_are_saved_once(self):
        self._saving.save_when_due()
        self._checkpoints.save.assert_not_called()
        self._saving.make_weights_due()
        self._saving.save_when_due()
        self._saving.save_when_due()
        self._checkpoints.save.assert_called_once_with(0, {})
        self._replay.checkpoint.assert_not_called()

    def test_weights_come_before_replay(self):
        self._make_replay_due()
        self._saving.save_when_due()
        self._saving.save_all()
        self.assertEqual(self._called(), ["checkpoints.save", "replay.checkpoint"] * 2)

    def _save_both(self, times: int) -> None:
        for _ in range(times):
            self._make_replay_due()
            self._saving.save_when_due()

    def test_a_full_disk_is_told_once_and_so_is_its_end(self):
        self._checkpoints.save.side_effect = run_directory.WorkdirError("no space for weights")
        self._replay.checkpoint.side_effect = RuntimeError(_FULL)
        with self.assertLogs(level="INFO") as logs:
            self._save_both(5)
            self._checkpoints.save.side_effect = None
            self._save_both(2)
            self._replay.checkpoint.side_effect = None
            self._save_both(2)
        self.assertEqual(self._checkpoints.save.call_count, 9)
        self.assertEqual(self._replay.checkpoint.call_count, 4)
        self.assertEqual(
            [record.getMessage() for record in logs.records],
            [
                "no space for weights; training goes on and tries again",
                "weights can be saved again",
                f"cannot save replay: {_FULL}; training goes on and tries again",
                "replay can be saved again",
            ],
        )
        self.assertEqual(
            [record.levelno for record in logs.records], 2 * [logging.WARNING, logging.INFO]
        )

    def test_replay_is_saved_soon_after_failed_weights(self):
        self._checkpoints.save.side_effect = run_directory.WorkdirError("no space for weights")
        with self.assertLogs(level="WARNING"):
            self._save_both(1)
        self._replay.checkpoint.assert_not_called()
        self._checkpoints.save.side_effect = None
        self._saving._next_replay -= 60 * run_config.Config().checkpoint_minutes
        self._saving.save_when_due()
        self._replay.checkpoint.assert_called_once()

    def test_a_lost_directory_ends_the_run_and_saves_nothing(self):
        lost = lock.LostError("renamed")
        self.enter_context(mock.patch.object(lock, "check", side_effect=lost))
        for save in (self._saving.save_when_due, self._saving.save_all):
            self._make_replay_due()
            with self.assertRaises(lock.LostError):
                save()
        self.assertEmpty(self._called())

    def test_the_last_save_of_weights_must_work(self):
        self._checkpoints.save.side_effect = run_directory.WorkdirError("no space")
        with self.assertRaisesRegex(run_directory.WorkdirError, "^no space"):
            self._saving.save_all()

    def test_the_last_save_of_replay_need_not(self):
        self._replay.checkpoint.side_effect = RuntimeError(_FULL)
        with self.assertLogs(level="WARNING") as logs:
            self._saving.save_all()
        self.assertLen(logs.output, 1)
        self.assertIn(_FULL, logs.output[0])
        self._checkpoints.save.assert_called_once()

    def test_weights_that_are_not_finite_end_the_run_and_save_no_replay(self):
        self._checkpoints.save.side_effect = finiteness.NonFiniteWeightsError("kernel")
        for save in (self._saving.save_when_due, self._saving.save_all):
            self._make_replay_due()
            with self.assertRaises(finiteness.NonFiniteWeightsError):
                save()
        self._replay.checkpoint.assert_not_called()

    def test_the_first_checkpoint_is_noted_until_that_works(self):
        self._checkpoints.save.side_effect = run_directory.WorkdirError("no space")
        self._saving.make_weights_due()
        with self.assertLogs(level="WARNING"):
            self._saving.save_when_due()
        self._note.assert_not_called()
        self._checkpoints.save.side_effect = None
        self._note.side_effect = run_directory.WorkdirError("no space")
        self._saving.save_all()
        self._note.side_effect = None
        for _ in range(3):
            self._saving.save_all()
        self.assertEqual(self._note.call_args_list, 2 * [mock.call(pathlib.Path("run"))])


if __name__ == "__main__":
    absltest.main()
