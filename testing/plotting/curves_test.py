"""Learning curves: values at each point, intervals over seeds, figures and CSV files."""

import numpy as np
import pandas as pd
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.plotting import curves, tables
from laser_tf.scores import reference
from testing import folders, messages, processes
from testing.plotting import run_logs

LABELS = ("LASER", "IMPALA", "ACER", "R2D2", "Reactor")
GAMES = ("breakout", "space_invaders")


class CurvesTest(folders.FolderTest):
    def _run(self, name, episodes, **others):
        return run_logs.write_run(self._folder / name, episodes, **others)

    def _read(self, *runs, **others):
        return tables.read({"game": {"label": runs}}, **others)

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
        table = self._read(run, x=tables.SECONDS)
        self.assertEqual((table["seconds"].iloc[0], table["seconds"].iloc[-1]), (10, 40))
        halfway = np.interp(25.0, table["seconds"], table["value"])
        self.assertAlmostEqual(halfway, 1.5)

    def test_run_without_seconds_is_rejected_over_time(self):
        run = self._run("run", [(100, 0, 1.0)])
        with messages.raises(errors.UserError, run, "run/wall_seconds"):
            self._read(run, x=tables.SECONDS)

    def _summarise(self, values):
        """Returns the summary of values [seeds, points]."""
        table = pd.DataFrame(values).melt(var_name="point")
        return tables.summarise(table, ["point"])

    def test_interval_of_many_seeds_is_near_the_normal_approximation(self):
        values = np.random.default_rng(0).normal(5.0, 2.0, (40, 3))
        table = self._summarise(values)
        half = 1.96 * values.std(axis=0) / np.sqrt(40)
        tolerance = 0.15 * half.max()
        np.testing.assert_allclose(table["interval_low"], table["mean"] - half, atol=tolerance)
        np.testing.assert_allclose(table["interval_high"], table["mean"] + half, atol=tolerance)

    def test_fewer_than_three_seeds_have_no_interval(self):
        table = self._summarise([[1.0, 5.0], [2.0, np.nan], [3.0, 5.0]])
        self.assertEqual(list(table["interval_low"].isna()), [False, True])
        self.assertEqual(list(table["seeds"]), [3, 2])
        self.assertEqual(list(table["mean"]), [2.0, 5.0])

    @parameterized.parameters((1, 1, 0), (2, 3, 0), (3, 1, 1))
    def test_seeds_are_drawn_singly_or_as_an_interval(self, seeds, lines, areas):
        runs = [
            self._run(str(seed), [(k, 0, float(seed + k)) for k in range(5)])
            for seed in range(seeds)
        ]
        _, axes = curves.make_panels(1, 1)
        curves.draw(axes[0, 0], self._read(*runs), tables.ENV_FRAMES)
        drawn = [line for line in axes[0, 0].lines if len(line.get_xdata())]
        self.assertGreaterEqual(len(drawn), lines)
        self.assertLen(axes[0, 0].collections, areas)
        self.assertLen(axes[0, 0].get_legend_handles_labels()[1], 1)

    @parameterized.parameters("curves.png", "curves.csv")
    def test_full_disk_is_named_and_keeps_the_earlier_file(self, name):
        path = self._folder / name
        path.write_text("earlier")
        figure, _ = curves.make_panels(1, 1)
        table = pd.DataFrame({"label": ["LASER"] * 100})
        with processes.full_disk(100), self.assertRaises(OSError) as raised:
            curves.save(figure, path) if path.suffix == ".png" else tables.write_csv(table, path)
        self.assertEqual(raised.exception.filename, str(path))
        self.assertEqual(path.read_text(), "earlier")
        self.assertLen(list(self._folder.iterdir()), 1)


class WriteAgentsTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._folder = folders.of_class(cls)
        cls._write(cls._folder)

    @staticmethod
    def _write(folder, suite="minatar"):
        """Agent k returns k and k + 2 on breakout, 5 - k and 7 - k on space_invaders."""
        runs = {game: {label: [] for label in LABELS} for game in GAMES}
        for game in GAMES:
            for k, label in enumerate(LABELS):
                for seed in range(2):
                    value = 2.0 * seed + (k if game == "breakout" else 5 - k)
                    run = run_logs.write_run(
                        folder / game / label / str(seed),
                        [(100, 0, value - 1), (200, 0, value + 1)],
                        tasks=["game"],
                        seconds={100: 10.0 * (k + 1), 200: 20.0 * (k + 1)},
                        suite=suite,
                    )
                    runs[game][label].append(run)
        curves.write_agents(runs, folder)

    def test_each_game_has_final_returns_and_seconds(self):
        rows = run_logs.read_csv(self._folder / "agents.csv")
        expected = [(game, label) for game in GAMES for label in LABELS]
        self.assertEqual([(row["game"], row["label"]) for row in rows], expected)
        for k, row in enumerate(rows):
            mean = 1 + (k if row["game"] == "breakout" else 5 - k % 5)
            self.assertEqual((row["env_frames"], row["seeds"]), ("200", "2"))
            self.assertEqual(
                [float(row[name]) for name in ("mean", "min", "max")], [mean, mean - 1, mean + 1]
            )
            self.assertEqual(float(row["training_seconds"]), 20.0 * (k % 5 + 1))

    def test_figure_and_both_tables_of_curves_are_written(self):
        self.assertEqual((self._folder / "curves.png").read_bytes()[:4], b"\x89PNG")
        by_frames, by_time = (
            run_logs.read_csv(self._folder / name) for name in ("by_frames.csv", "by_time.csv")
        )
        self.assertLen({(row["game"], row["label"]) for row in by_frames}, len(GAMES) * len(LABELS))
        self.assertEqual(by_frames[-1]["env_frames"], "200")
        self.assertEqual(by_time[-1]["seconds"], "100.00")

    def test_standings_cover_both_games(self):
        rows = {row["label"]: row for row in run_logs.read_csv(self._folder / "standings.csv")}
        self.assertEqual({row["mean_rank"] for row in rows.values()}, {"3"})
        for row in rows.values():
            self.assertAlmostEqual(float(row["elo"]), 0, places=6)
        scores = [
            reference.normalised("minatar", game, score)
            for game, score in zip(GAMES, (1.0, 6.0), strict=True)
        ]
        for name in ("median_normalised", "mean_normalised"):
            self.assertAlmostEqual(float(rows["LASER"][name]), sum(scores) / 2, places=4)

    def test_suite_without_references_has_ranks_only(self):
        folder = self._folder / "tmaze"
        self._write(folder, suite="tmaze")
        for row in run_logs.read_csv(folder / "standings.csv"):
            self.assertEqual((row["median_normalised"], row["mean_normalised"]), ("", ""))
            self.assertEqual(row["mean_rank"], "3")


if __name__ == "__main__":
    absltest.main()
