"""Curves come from the log of episodes, and intervals from the seeds."""

import pathlib
import tempfile
import warnings
from collections.abc import Iterable

import numpy as np
from absl.testing import absltest, parameterized
from matplotlib import figure

from laser_tf import errors
from laser_tf.analysis import seed_curves
from laser_tf.environments import episode_statistics
from laser_tf.monitoring import episode_log, tensorboard


class SeedCurvesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)

    def _run(self, name: str, episodes: Iterable[tuple[int, int, float]]) -> pathlib.Path:
        """Episodes are env frames, task and return."""
        run = self._folder / name
        run.mkdir()
        log = episode_log.EpisodeLog(run, ["one", "two"])
        log.resume(None)
        for frames, task, value in episodes:
            log.add(frames, episode_statistics.Episode(0, task, value, 9))
        log.flush()
        return run

    def test_each_point_is_the_mean_of_the_last_100_episodes_before_it(self):
        # Far more episodes than points, and none of TensorBoard's rows.
        returns = np.sin(np.arange(1_000))
        run = self._run("run", ((10 * k, 0, value) for k, value in enumerate(returns)))
        frames, summary = seed_curves.read([run], tensorboard.RETURN)
        self.assertEqual((frames[0], frames[-1]), (0, 9_990))
        for frame, mean in zip(frames, summary.mean, strict=True):
            before = returns[: int(frame) // 10 + 1]
            self.assertAlmostEqual(mean, before[-100:].mean(), places=8)

    def test_tasks_weigh_the_same_however_many_episodes_they_have(self):
        many = [(k, 0, 1.0) for k in range(100)]
        run = self._run("run", [*many, (100, 1, 3.0), (200, 1, 5.0)])
        frames, summary = seed_curves.read([run], tensorboard.RETURN)
        self.assertEqual((frames[0], frames[-1]), (100, 200))  # from where both are known
        self.assertEqual((summary.mean[0], summary.mean[-1]), (2.0, 2.5))

    def test_a_run_that_lacks_a_task_of_the_others_is_refused(self):
        both = self._run("both", [(1, 0, 1.0), (2, 1, 11.0)])
        one = self._run("one", [(1, 0, 1.0), (2, 0, 1.0)])
        with self.assertRaisesRegex(errors.UserError, "one holds no finished episode of two, as "):
            seed_curves.read([both, one], tensorboard.RETURN)

    def test_small_values_keep_their_digits(self):
        summary = seed_curves.summarise([[4e-4], [3e-4], [2e-4]])
        (row,) = seed_curves.rows(np.array([10.0]), summary)
        self.assertEqual([row[1], *row[4:]], ["0.0003", "0.0002", "0.0004", 3])

    def test_a_run_without_episodes_is_refused(self):
        (self._folder / "none/tensorboard").mkdir(parents=True)
        with self.assertRaisesRegex(errors.UserError, "none holds no finished episode"):
            seed_curves.read([self._folder / "none"], tensorboard.RETURN)

    def test_intervals_of_many_seeds_are_those_of_the_normal_approximation(self):
        values = np.random.default_rng(0).normal(5.0, 2.0, (40, 3))
        summary = seed_curves.summarise(values)
        half = 1.96 * values.std(axis=0) / np.sqrt(40)
        np.testing.assert_allclose(summary.low, summary.mean - half, atol=0.15 * half.max())
        np.testing.assert_allclose(summary.high, summary.mean + half, atol=0.15 * half.max())
        again = seed_curves.summarise(values)
        np.testing.assert_array_equal(again.low, summary.low)  # the same picture each time

    def test_one_number_a_seed_has_an_interval_as_a_curve_s_point_has(self):
        number, curve = (seed_curves.summarise(v) for v in ([1, 2, 4], [[1], [2], [4]]))
        self.assertEqual((number.low, number.high), (curve.low[0], curve.high[0]))
        self.assertLess(number.low, number.mean)

    def test_where_a_seed_has_no_value_there_is_no_interval_and_no_warning(self):
        values = np.array([[1.0, 5.0, np.nan], [2.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            summary = seed_curves.summarise(values)
            self.assertTrue(np.isnan(seed_curves.summarise(values[:, 1]).low))
        self.assertSequenceEqual([summary.low[0], summary.high[0]], [1.0, 3.0])
        self.assertTrue(np.isnan([summary.low[1:], summary.high[1:]]).all())

    def test_seeds_without_a_stretch_in_common_have_one_point(self):
        early = self._run("early", [(10, 0, 1.0), (20, 0, 2.0)])
        late = self._run("late", [(30, 0, 5.0), (40, 0, 6.0)])
        frames, summary = seed_curves.read([early, late], tensorboard.RETURN)
        self.assertEqual((list(frames), list(summary.mean)), ([30], [3.25]))

    @parameterized.parameters(1, 2)
    def test_of_fewer_than_three_seeds_there_is_no_interval(self, seeds):
        summary = seed_curves.summarise(np.arange(5.0 * seeds).reshape(seeds, 5))
        self.assertTrue(np.isnan([summary.low, summary.high]).all())
        self.assertEqual(seed_curves.rows(np.arange(5), summary)[1][2:4], ["", ""])

    @parameterized.parameters((1, 1, 0, ""), (2, 3, 0, "thin"), (3, 1, 1, "shaded"))
    def test_seeds_are_drawn_one_by_one_or_as_an_interval(self, seeds, lines, areas, words):
        summary = seed_curves.summarise(np.random.default_rng(0).normal(size=(seeds, 5)))
        axes = figure.Figure().subplots()
        seed_curves.draw(axes, np.arange(5), summary, "label")
        self.assertLen(axes.lines, lines)
        self.assertLen(axes.collections, areas)
        self.assertLen(axes.get_legend_handles_labels()[1], 1)
        self.assertStartsWith(seed_curves.explanation([summary]), words)
        for line, values in zip(axes.lines[1:], summary.values, strict=False):
            np.testing.assert_array_equal(line.get_ydata(), values)
            self.assertLess(line.get_linewidth(), axes.lines[0].get_linewidth())


if __name__ == "__main__":
    absltest.main()
