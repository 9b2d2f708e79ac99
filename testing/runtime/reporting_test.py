"""Averages over updates and episodes, and the pace that a run reports."""

import math
from unittest import mock

from absl.testing import absltest

from laser_tf.environments import episode_statistics
from laser_tf.runtime import reporting


class ReporterTest(absltest.TestCase):
    def test_averages_updates_and_measures_the_pace(self):
        display, writer, log = mock.Mock(), mock.Mock(), mock.Mock()
        returns = reporting.EpisodeReturns("catch", ["catch"])
        for value in (1.0, 3.0):
            returns.add(episode_statistics.Episode(0, 0, value, 9))
        clock = iter([0.0, 0.0, 10.0, 10.0])
        with mock.patch.object(reporting.time, "monotonic", side_effect=lambda: next(clock)):
            reporter = reporting.Reporter(display, writer, returns, log, metrics_seconds=10.0)
            for value in (1.0, math.nan, 2.0):
                reporter.add_update({"loss/policy": value}, busy_seconds=2.0)
            reporter.report(4_000, lambda: 0.5, lambda: {"throughput/x": 7.0})
        log.flush.assert_called_once_with()
        (env_frames, row), _ = writer.write.call_args
        self.assertEqual(env_frames, 4_000)
        self.assertEqual(row["loss/policy"], 1.5)
        self.assertEqual(row["episode/mean_return_last_100"], 2.0)
        self.assertEqual(row["throughput/learner_busy_fraction"], 0.6)
        self.assertEqual(row["throughput/updates_per_second"], 0.3)
        self.assertEqual(row["throughput/x"], 7.0)
        self.assertEqual(display.update.call_args.kwargs["learner_busy"], 0.6)

    def test_only_the_last_100_episodes_count(self):
        returns = reporting.EpisodeReturns("catch", ["catch"])
        self.assertTrue(math.isnan(returns.mean_return()))
        for value in [1000.0] * 50 + [2.0] * 100:
            returns.add(episode_statistics.Episode(0, 0, value, 9))
        self.assertEqual(returns.mean_return(), 2.0)


if __name__ == "__main__":
    absltest.main()
