"""When weights are saved, and what a full disk does."""

from unittest import mock

from absl.testing import absltest

from laser_tf.runtime import checkpointing, learner, run_config, saver


class SaverTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._checkpoints, self._replay = mock.Mock(), mock.Mock()
        self._saving = saver.Saver(
            run_config.Config(), self._checkpoints, self._replay, learner.Counters()
        )

    def test_weights_that_are_made_due_are_saved_once(self):
        self._saving.save_when_due()
        self._checkpoints.save.assert_not_called()
        self._saving.make_weights_due()
        self._saving.save_when_due()
        self._saving.save_when_due()
        self._checkpoints.save.assert_called_once_with(0)
        self._replay.checkpoint.assert_not_called()

    def test_a_full_disk_is_told_and_ends_nothing(self):
        self._checkpoints.save.side_effect = checkpointing.WorkdirError("no space left")
        self._saving.make_weights_due()
        with self.assertLogs(level="WARNING") as logs:
            self._saving.save_when_due()
        self.assertRegex(logs.output[0], "no space left")


if __name__ == "__main__":
    absltest.main()
