"""The end of a training: an evaluation, or the signal that stopped it."""

import math
import signal
import types

from absl.testing import absltest, parameterized

from launch import session
from testing import fakes, folders, processes


class _Run:
    """A training that gets a signal at a share of its budget."""

    resumed = False
    env_frames = 100
    # No episode has ended.
    returns = types.SimpleNamespace(mean_return=lambda: math.nan, num_episodes=0)

    def __init__(self, signal_number: int | None, *, is_spent: bool):
        self.finished = False
        self._signal_number = signal_number
        self._is_spent = is_spent

    def run(self, should_stop, *_) -> None:
        if self._signal_number:
            signal.raise_signal(self._signal_number)
        assert should_stop() == bool(self._signal_number)
        self.finished = self._is_spent


class SessionTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        processes.keep_handlers(self)

    @parameterized.parameters(
        (None, True, None),
        (signal.SIGINT, False, signal.SIGINT),
        # During the wait for the last periodic evaluation, or during the last save.
        (signal.SIGINT, True, signal.SIGINT),
        (signal.SIGTERM, True, signal.SIGTERM),
    )
    def test_stopped_run_is_not_evaluated(self, number, is_spent, expected):
        # Evaluating would fail: there is no run in the folder.
        config = fakes.catch_config(run={"evaluation_episodes": 0 if number is None else 4})
        run = _Run(number, is_spent=is_spent)
        with self.assertLogs(level="INFO") as logs:
            self.assertEqual(session.train_and_evaluate(run, config, self._folder), expected)
        self.assertNotIn("mean return", "".join(logs.output))

    def test_empty_directories_are_not_listed_as_results(self):
        config = fakes.catch_config(run={"evaluation_episodes": 0})
        (self._folder / "videos").mkdir()
        (self._folder / "tensorboard").mkdir()
        (self._folder / "tensorboard" / "events").touch()
        with self.assertLogs(level="INFO") as logs:
            session.evaluate(self._folder, config)
        self.assertEqual(
            [line.split()[-1] for line in logs.output], [str(self._folder / "tensorboard")]
        )


if __name__ == "__main__":
    absltest.main()
