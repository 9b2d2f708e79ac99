"""Learning curves: values at each point, intervals over seeds, figures and CSV files."""

import pathlib
import tempfile
import warnings

import numpy as np
import pandas as pd
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.plotting import curves
from testing import messages
from testing.plotting import run_logs


class CurvesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def _run(self, name, episodes, **others):
        return run_logs.write_run(self._folder / name, episodes, **others)

    def _read(self, *runs, **others):
        return curves.read({"game": {"label": runs}}, **others)

    def test_point_is_the_mean_of_the_last_100_episodes(self):
        returns = np.sin(np.arange(1_000))
        run = self._run("run", [(10 * k, 0, value) for k, value in enumerate(returns)])
        table = self._read(run)
        self.assertEqual((table["env_frames"].min(), table["env_frames"].max()), (0, 9_990))
        for frames, value in zip(table["env_frames"], table["value"], strict=True):
            if not frames % 10:
                before = returns[: int(frames) // 10 + 1]
                self.assertAlmostEqual(value, before[-100:].mean(), places=8)

    def test_tasks_have_equal_weights(self):
        many = [(k, 0, 1.0) for k in range(100)]
        table = self._read(self._run("run", [*many, (100, 1, 3.0), (200, 1, 5.0)]))
        self.assertEqual((table["env_frames"].iloc[0], table["env_frames"].iloc[-1]), (100, 200))
        self.assertEqual((table["value"].iloc[0], table["value"].iloc[-1]), (2.0, 2.5))

    def test_seed_that_lacks_a_task_is_rejected(self):
        both = self._run("both", [(1, 0, 1.0), (2, 1, 11.0)])
        one = self._run("single", [(1, 0, 1.0), (2, 0, 1.0)])
        with messages.raises(errors.UserError, one, "two"):
            self._read(both, one)

    def test_run_without_episodes_is_rejected(self):
        run = self._run("none", [])
        with messages.raises(errors.UserError, run):
            self._read(run)

    def test_directory_without_run_is_rejected(self):
        with messages.raises(errors.UserError, self._folder):
            self._read(self._folder)

    def test_seeds_without_common_range_have_one_point(self):
        early = self._run("early", [(10, 0, 1.0), (20, 0, 2.0)])
        late = self._run("late", [(30, 0, 5.0), (40, 0, 6.0)])
        table = self._read(early, late)
        self.assertEqual(list(table["env_frames"]), [30, 30])
        self.assertEqual(list(table["value"]), [1.5, 5.0])

    def test_seconds_are_those_of_the_logged_metric(self):
        episodes = [(100, 0, 1.0), (200, 0, 3.0)]
        run = self._run("run", episodes, seconds={100: 10.0, 200: 40.0})
        table = self._read(run, x=curves.SECONDS)
        self.assertEqual((table["seconds"].iloc[0], table["seconds"].iloc[-1]), (10, 40))
        halfway = np.interp(25.0, table["seconds"], table["value"])
        self.assertAlmostEqual(halfway, 1.5)

    def test_run_without_seconds_is_rejected_over_time(self):
        run = self._run("run", [(100, 0, 1.0)])
        with messages.raises(errors.UserError, run, "run/wall_seconds"):
            self._read(run, x=curves.SECONDS)

    def test_interval_of_many_seeds_is_near_the_normal_approximation(self):
        values = np.random.default_rng(0).normal(5.0, 2.0, (40, 3))
        table = pd.DataFrame(curves.summary(values), columns=curves.SUMMARY)
        half = 1.96 * values.std(axis=0) / np.sqrt(40)
        tolerance = 0.15 * half.max()
        np.testing.assert_allclose(table["interval_low"], table["mean"] - half, atol=tolerance)
        np.testing.assert_allclose(table["interval_high"], table["mean"] + half, atol=tolerance)

    def test_missing_value_of_a_seed_leaves_no_interval_and_no_warning(self):
        values = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, 5.0]])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table = pd.DataFrame(curves.summary(values), columns=curves.SUMMARY)
        self.assertEqual(list(table["interval_low"].isna()), [False, True])
        self.assertEqual(list(table["seeds"]), [3, 2])

    def test_fewer_than_three_seeds_have_no_interval(self):
        table = pd.DataFrame(curves.summary(np.ones([2, 4])), columns=curves.SUMMARY)
        self.assertTrue(table["interval_low"].isna().all())

    @parameterized.parameters((1, 1, 0), (2, 3, 0), (3, 1, 1))
    def test_seeds_are_drawn_singly_or_as_an_interval(self, seeds, lines, areas):
        runs = [
            self._run(str(seed), [(k, 0, float(seed + k)) for k in range(5)])
            for seed in range(seeds)
        ]
        _, axes = curves.panels(1, 1)
        curves.draw(axes[0, 0], self._read(*runs), curves.ENV_FRAMES)
        drawn = [line for line in axes[0, 0].lines if len(line.get_xdata())]
        self.assertGreaterEqual(len(drawn), lines)
        self.assertLen(axes[0, 0].collections, areas)
        self.assertLen(axes[0, 0].get_legend_handles_labels()[1], 1)

    def test_figure_and_tables_over_frames_and_time(self):
        runs = {
            game: {
                label: [self._run(f"{game}{label}{seed}", [(100, 0, 1.0), (200, 0, 2.0 + seed)],
                                  seconds={100: 1.0, 200: 2.0}) for seed in (0, 1)]
                for label in ("a", "b")
            }
            for game in ("x", "y")
        }  # fmt: skip
        curves.write_with_time(runs, self._folder)
        self.assertEqual((self._folder / "curves.png").read_bytes()[:4], b"\x89PNG")
        rows = run_logs.read_csv(self._folder / "by_frames.csv")
        self.assertEqual({(row["game"], row["label"]) for row in rows},
                         {("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")})  # fmt: skip
        last = rows[-1]
        self.assertEqual((last["env_frames"], last["min"], last["max"]), ("200", "1.5", "2"))
        self.assertEqual((last["interval_low"], last["seeds"]), ("", "2"))
        rows = run_logs.read_csv(self._folder / "by_time.csv")
        self.assertEqual(rows[-1]["seconds"], "2.00")


if __name__ == "__main__":
    absltest.main()
