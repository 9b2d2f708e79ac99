"""Comparison of agents, from the files of small runs with results computed by hand."""

import pathlib
import tempfile

from absl.testing import absltest

from laser_tf.plotting import agents_table
from laser_tf.scores import reference
from testing.plotting import run_logs

LABELS = ("LASER", "IMPALA", "ACER", "R2D2", "Reactor")
GAMES = ("breakout", "space_invaders")


class AgentsTableTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def _write(self, suite="minatar"):
        """Agent k returns k and k + 2 on breakout, 5 - k and 7 - k on space_invaders."""
        runs = {game: {label: [] for label in LABELS} for game in GAMES}
        for game in GAMES:
            for k, label in enumerate(LABELS):
                for seed in range(2):
                    value = 2.0 * seed + (k if game == "breakout" else 5 - k)
                    run = run_logs.write_run(
                        self._folder / game / label / str(seed),
                        [(100, 0, value - 1), (200, 0, value + 1)],
                        tasks=["game"],
                        seconds={100: 10.0 * (k + 1), 200: 20.0 * (k + 1)},
                        suite=suite,
                    )
                    runs[game][label].append(run)
        agents_table.write(runs, self._folder)

    def test_final_returns_and_seconds_of_each_game(self):
        self._write()
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

    def test_standings_over_both_games(self):
        self._write()
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
        self._write(suite="tmaze")
        for row in run_logs.read_csv(self._folder / "standings.csv"):
            self.assertEqual((row["median_normalised"], row["mean_normalised"]), ("", ""))
            self.assertEqual(row["mean_rank"], "3")


if __name__ == "__main__":
    absltest.main()
