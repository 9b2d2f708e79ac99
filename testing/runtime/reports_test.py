"""What a run tells: the progress display, TensorBoard's data and the averages behind both."""

import io
import math
import pathlib
import tempfile
from unittest import mock

import numpy as np
from absl.testing import absltest
from rich import console

from laser_tf.environments import episode_statistics
from laser_tf.runtime import metrics, progress, reporting

ROW = {
    "updates_per_second": 12.34,
    "mean_return": -3.21,
    "replay_fill": 0.41,
    "policy_lag": 6.5,
    "learner_busy": 0.93,
}


class ProgressTest(absltest.TestCase):
    def test_plain_lines_where_there_is_no_terminal(self):
        stream = io.StringIO()
        with (
            mock.patch.object(progress.time, "monotonic", side_effect=range(100, 200, 2)),
            progress.ProgressDisplay(2_000, "pong", stream) as display,
        ):
            display.update(env_frames=1_000, **ROW | {"mean_return": math.nan})
            for frames in range(1_100, 1_600, 100):
                display.update(env_frames=frames, **ROW)
        lines = stream.getvalue().splitlines()
        self.assertLess(len(lines), 5)  # one every ten seconds, not one an update
        self.assertIn("return -", lines[0])
        self.assertIn("left -", lines[0])
        self.assertRegex(
            lines[-1],
            r"^pong: frames 1,500 \(75\.0%\)  \d+ frames/s  12\.3 updates/s  return -3\.21  "
            r"replay 41%  lag 6\.5  busy 93%  left 0:00:\d\d$",
        )
        self.assertNotIn("\x1b", stream.getvalue())

    def test_the_pace_of_a_resumed_run_counts_from_where_it_resumed(self):
        stream = io.StringIO()
        with (
            mock.patch.object(progress.time, "monotonic", side_effect=[0, 0, 0, 100, 100, 100]),
            progress.ProgressDisplay(3_000_000, "pong", stream) as display,
        ):
            display.update(env_frames=2_000_000, **ROW)
            display.update(env_frames=2_100_000, **ROW)
        self.assertIn("1,000 frames/s", stream.getvalue())
        self.assertIn("left 0:15:00", stream.getvalue())

    def test_one_live_line_on_a_narrow_terminal(self):
        stream = io.StringIO()
        terminal = console.Console(file=stream, width=60, force_terminal=True)
        with mock.patch.object(progress.console, "Console", return_value=terminal):
            with progress.ProgressDisplay(2_000, "pong", stream) as display:
                for frames in (500, 1_000):
                    display.update(env_frames=frames, **ROW)
                terminal.print("a line that is logged meanwhile")
        self.assertIn("\x1b[", stream.getvalue())
        self.assertIn("1,000", stream.getvalue())
        self.assertIn("a line that is logged meanwhile", stream.getvalue())


class MetricsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)

    def test_reads_back_what_was_written_and_leaves_out_nan(self):
        with metrics.MetricsWriter(self._folder) as writer:
            writer.hyperparameters({"agent.discount": 0.99, "environment.task": "pong"})
            writer.write(100, {"loss/policy": 1.5, "episode/mean_return_last_100": math.nan})
            writer.write(200, {"loss/policy": 0.5, "episode/mean_return_last_100": -20.0})
        steps, values = metrics.read_scalars(self._folder, "loss/policy")
        np.testing.assert_array_equal(steps, [100, 200])
        np.testing.assert_array_equal(values, [1.5, 0.5])
        steps, _ = metrics.read_scalars(self._folder, "episode/mean_return_last_100")
        np.testing.assert_array_equal(steps, [200])

    def test_frames_that_were_run_twice_count_once(self):
        for steps in ([100, 200, 300], [250, 350]):
            with metrics.MetricsWriter(self._folder) as writer:
                for step in steps:
                    writer.write(step, {"loss/policy": float(step)})
        steps, _ = metrics.read_scalars(self._folder, "loss/policy")
        np.testing.assert_array_equal(steps, [100, 200, 250, 350])

    def test_a_missing_metric_is_empty(self):
        with metrics.MetricsWriter(self._folder) as writer:
            writer.write(1, {"loss/policy": 1.0})
        steps, values = metrics.read_scalars(self._folder, "loss/polcy")
        self.assertEmpty(steps)
        self.assertEmpty(values)


class ReporterTest(absltest.TestCase):
    def test_averages_updates_and_measures_the_pace(self):
        display, writer = mock.Mock(), mock.Mock()
        returns = reporting.EpisodeReturns()
        for value in (1.0, 3.0):
            returns.add(episode_statistics.Episode(0, value, 9))
        clock = iter([0.0, 0.0, 10.0, 10.0])
        with mock.patch.object(reporting.time, "monotonic", side_effect=lambda: next(clock)):
            reporter = reporting.Reporter(display, writer, returns, metrics_seconds=10.0)
            for value in (1.0, math.nan, 2.0):
                reporter.add_update({"loss/policy": value}, busy_seconds=2.0)
            reporter.report(4_000, lambda: 0.5, lambda: {"throughput/x": 7.0})
        (env_frames, row), _ = writer.write.call_args
        self.assertEqual(env_frames, 4_000)
        self.assertEqual(row["loss/policy"], 1.5)
        self.assertEqual(row["episode/mean_return_last_100"], 2.0)
        self.assertEqual(row["throughput/learner_busy_fraction"], 0.6)
        self.assertEqual(row["throughput/updates_per_second"], 0.3)
        self.assertEqual(row["throughput/x"], 7.0)
        self.assertEqual(display.update.call_args.kwargs["learner_busy"], 0.6)

    def test_only_the_last_100_episodes_count(self):
        returns = reporting.EpisodeReturns()
        self.assertTrue(math.isnan(returns.mean_return()))
        for value in [1000.0] * 50 + [2.0] * 100:
            returns.add(episode_statistics.Episode(0, value, 9))
        self.assertEqual(returns.mean_return(), 2.0)


if __name__ == "__main__":
    absltest.main()
