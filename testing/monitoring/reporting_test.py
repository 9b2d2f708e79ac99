"""Tests of averages over updates and episodes, and of the pace of a run."""

import math
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.monitoring import episode_log, reporting
from laser_tf.scores import reference


class ReporterTest(absltest.TestCase):
    def test_updates_are_averaged_and_pace_is_measured(self):
        show, writer, log = mock.Mock(), mock.Mock(), mock.Mock()
        returns = reporting.EpisodeReturns("catch", ["catch"])
        for value in (1.0, 3.0):
            returns.add(episode_log.Row(0, "catch", value, 9))
        clock = self.enter_context(mock.patch.object(reporting.time, "monotonic"))
        clock.return_value = 0.0
        reporter = reporting.Reporter(
            show,
            writer,
            returns,
            log,
            metrics_seconds=10.0,
            metrics_frames=10**9,
            env_frames=1_000,
            wall_seconds=30.0,
        )
        for value in (1.0, math.nan, 2.0):
            reporter.add_update({"loss/policy": value}, busy_seconds=2.0)
        measured = {"throughput/x": 7.0, "replay/lost_unrolls": 2.0}
        faults = {"environment/non_finite_rewards": 0.0, "replay/duplicated_unrolls": 0.0}
        for seconds, frames in ((4.0, 3_800), (10.0, 4_000)):  # No row is due at the first.
            clock.return_value = seconds
            reporter.report(frames, lambda: 0.5, lambda: measured | faults)
        log.flush.assert_called_once_with()
        (env_frames, row), _ = writer.write.call_args
        self.assertEqual(env_frames, 4_000)
        self.assertEqual(row["loss/policy"], 1.5)
        self.assertEqual(row["episode/mean_return_last_100"], 2.0)
        self.assertEqual(row["throughput/learner_busy_fraction"], 0.6)
        self.assertEqual(row["throughput/updates_per_second"], 0.3)
        self.assertEqual(row["throughput/env_frames_per_second"], 300.0)
        self.assertEqual(row["throughput/x"], 7.0)
        self.assertEqual(row["replay/lost_unrolls"], 2.0)
        self.assertNoCommonElements(row, faults)
        self.assertEqual(row["run/wall_seconds"], 40.0)
        self.assertEqual(show.call_args.args[0].learner_busy, 0.6)
        clock.return_value = 25.0
        reporter.report(4_000, lambda: 0.5, dict, last=True)  # Without an update since the row.
        writer.write.assert_called_once()
        shown = show.call_args.args[0]
        self.assertEqual((shown.updates_per_second, shown.learner_busy), (0.3, 0.6))

    def test_short_run_has_rows_by_its_frames(self):
        writer, log = mock.Mock(), mock.Mock()
        returns = reporting.EpisodeReturns("catch", ["catch"])
        reporter = reporting.Reporter(
            mock.Mock(),
            writer,
            returns,
            log,
            metrics_seconds=10.0,
            metrics_frames=500,
            env_frames=0,
        )
        for frames in range(40, 100_000, 40):
            reporter.add_update({}, busy_seconds=0.0)
            reporter.report(frames, lambda: 0.5, dict)
        written = [call.args[0] for call in writer.write.call_args_list]
        self.assertEqual(written[:3], [520, 1_040, 1_560])  # an update takes 40 frames
        self.assertLen(written, 192)
        self.assertEqual(log.flush.call_count, 192)

    def test_only_the_last_100_episodes_count(self):
        returns = reporting.EpisodeReturns("catch", ["catch"])
        self.assertTrue(math.isnan(returns.mean_return()))
        for value in [1000.0] * 50 + [2.0] * 100:
            returns.add(episode_log.Row(0, "catch", value, 9))
        self.assertEqual(returns.mean_return(), 2.0)

    def test_mean_return_covers_the_episodes_since_the_last_row(self):
        returns = reporting.EpisodeReturns("catch", ["catch"])
        returns.add(episode_log.Row(0, "catch", 90.0, 9), is_new=False)
        found = []
        for values in ([1.0, 5.0], [], [7.0]):
            for value in values:
                returns.add(episode_log.Row(0, "catch", value, 9))
            found.append(returns.metrics()["episode/mean_return"])
        np.testing.assert_array_equal(found, [3.0, math.nan, 7.0])


class FitnessTest(parameterized.TestCase):
    def _add(self, returns: reporting.EpisodeReturns, task: str, value: float) -> None:
        returns.add(episode_log.Row(0, task, value, 9))

    @parameterized.parameters(("minatar", ("asterix", "breakout")), ("catch", ("catch", "other")))
    def test_fitness_is_nan_before_each_task_has_an_episode(self, suite, tasks):
        returns = reporting.EpisodeReturns(suite, tasks)
        self.assertTrue(math.isnan(returns.fitness()))
        self._add(returns, tasks[0], 5.0)
        self.assertTrue(math.isnan(returns.fitness()))
        self._add(returns, tasks[1], 3.0)
        self.assertTrue(math.isfinite(returns.fitness()))
        returns.clear()
        self._add(returns, tasks[1], 3.0)
        self.assertTrue(math.isnan(returns.fitness()))

    def test_fitness_with_references_is_the_normalised_median(self):
        returns = reporting.EpisodeReturns("minatar", ["asterix", "breakout"])
        references = reference.reference_scores("minatar")
        for task, share in (("asterix", 0.2), ("breakout", 0.6)):
            random_score, score = references[task]
            self._add(returns, task, random_score + share * (score - random_score))
        self.assertAlmostEqual(returns.fitness(), 0.4)

    def test_fitness_without_references_is_the_mean(self):
        returns = reporting.EpisodeReturns("catch", ["catch", "other"])
        for task, value in (("catch", 1.0), ("catch", 3.0), ("other", 6.0)):
            self._add(returns, task, value)
        self.assertEqual(returns.fitness(), 4.0)


if __name__ == "__main__":
    absltest.main()
