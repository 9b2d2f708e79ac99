"""Callbacks that stop a run at a return or after a time."""

import math
import pathlib
import time
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf import callbacks, errors
from laser_tf.monitoring import episode_log
from testing import fakes, messages
from testing.callbacks import views

EPISODE = episode_log.Row(100, "catch", 1.0, 10)
WORKDIR = pathlib.Path("run")


class StopAtReturnTest(absltest.TestCase):
    def _episodes_until_stop(self, mean_return):
        run = views.run(WORKDIR, mean_return, config=fakes.catch_config())
        callback = callbacks.StopAtReturn(mean_return=0.5)
        callback.on_start(run)
        for number in range(1, 301):
            callback.on_episode(run, EPISODE)
            if run.stop_requested:
                return number
        return None

    def test_without_evaluations_training_episodes_count(self):
        self.assertEqual(self._episodes_until_stop(0.5), 100)
        self.assertIsNone(self._episodes_until_stop(0.49))
        self.assertIsNone(self._episodes_until_stop(math.nan))

    def test_each_task_needs_its_episodes(self):
        config = mock.Mock()
        config.run.evaluate_every_env_frames = 0
        config.environment.tasks = ("catch", "other")
        run = views.run(WORKDIR, mean_return=1.0, config=config)
        callback = callbacks.StopAtReturn(mean_return=0.5)
        callback.on_start(run)
        for _ in range(300):
            callback.on_episode(run, EPISODE)
        self.assertFalse(run.stop_requested)
        for _ in range(100):
            self.assertFalse(run.stop_requested)
            callback.on_episode(run, EPISODE._replace(task="other"))
        self.assertTrue(run.stop_requested)

    def test_with_evaluations_only_they_count(self):
        run = views.run(WORKDIR, mean_return=1.0)
        callback = callbacks.StopAtReturn(mean_return=0.5)
        callback.on_start(run)
        for _ in range(300):
            callback.on_episode(run, EPISODE)
        callback.on_evaluation(run, views.evaluation(0.4))
        self.assertFalse(run.stop_requested)
        callback.on_evaluation(run, views.evaluation(0.6))
        self.assertTrue(run.stop_requested)

    def test_return_that_is_no_number_raises(self):
        for value in ("abc", math.nan, None):
            with messages.raises(errors.ConfigError, "mean_return", value):
                callbacks.StopAtReturn(mean_return=value)


class StopAfterTest(parameterized.TestCase):
    @parameterized.parameters("on_update", "on_episode")
    def test_run_stops_after_the_time(self, hook):
        callback = callbacks.StopAfter(hours=1, seconds=10)
        run = views.run(WORKDIR)
        with mock.patch.object(time, "monotonic") as clock:
            clock.return_value = 1_000.0
            callback.on_start(run)
            clock.return_value = 1_000.0 + 3_609.0
            getattr(callback, hook)(run, None)
            self.assertFalse(run.stop_requested)
            clock.return_value += 1.0
            getattr(callback, hook)(run, None)
        self.assertTrue(run.stop_requested)

    @parameterized.parameters(
        {}, {"seconds": -1.0}, {"hours": math.nan}, {"hours": "abc"}, {"seconds": None}
    )
    def test_time_that_is_not_positive_raises(self, **arguments):
        with messages.raises(errors.ConfigError, "StopAfter", *arguments.values()):
            callbacks.StopAfter(**arguments)


if __name__ == "__main__":
    absltest.main()
