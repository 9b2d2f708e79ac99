"""Agents side by side, from small runs' files with hand-computed results."""

import csv
import pathlib
import tempfile
from collections.abc import Sequence

from absl.testing import absltest

from laser_tf.analysis import agents_table, figure, figures_agents
from laser_tf.environments import episode_statistics
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.scores import minatar
from laser_tf.workdir import run_directory

LABELS = ("LASER", "IMPALA", "ACER", "R2D2", "Reactor")


def _read(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write_run(folder: pathlib.Path, suite: str, pace: float, returns: Sequence[float]) -> None:
    """Of episodes that end after 100, 200, .. env frames."""
    values = {"run": {"env_frames": 200}, "environment": {"suite": suite}}
    run_directory.open_workdir(folder, values, {})
    log = episode_log.EpisodeLog(folder, ["game"])
    log.resume(None)
    with tensorboard.MetricsWriter(folder / "tensorboard") as writer:
        for number, value in enumerate(returns, 1):
            writer.write(100 * number, {"throughput/env_frames_per_second": pace})
            log.add(100 * number, episode_statistics.Episode(0, 0, value, 9))
    log.flush()


class AgentsTableTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)

    def _write(self, suite: str = "minatar") -> figure.Runs:
        """The k-th agent returns k and k + 2 on breakout, 5 - k and 7 - k on space_invaders."""
        runs = figures_agents.FIGURES["agents"].runs(
            self._folder, ("breakout", "space_invaders"), 2
        )
        for game, of_game in runs.items():
            for k, of_label in enumerate(of_game.values()):
                for seed, run in enumerate(of_label):
                    value = 2.0 * seed + (k if game == "breakout" else 5 - k)
                    # The mean of both episodes is `value`; the second seed is twice as fast.
                    _write_run(run, suite, (k + 1) * (seed + 1), [value - 1, value + 1])
        agents_table.write(runs, self._folder)
        return runs

    def test_final_returns_and_time_of_each_game(self):
        self._write()
        rows = _read(self._folder / "agents.csv")
        self.assertEqual(
            [(row["game"], row["label"]) for row in rows],
            [(game, label) for game in ("breakout", "space_invaders") for label in LABELS],
        )
        for k, row in enumerate(rows):
            k, mean = k % 5, k + 1 if row["game"] == "breakout" else 6 - k % 5
            self.assertEqual((row["env_frames"], row["seeds"]), ("200", "2"))
            self.assertEqual([float(row[name]) for name in ("mean", "min", "max")],
                             [mean, mean - 1, mean + 1])  # fmt: skip
            # 200 frames at (k + 1) and 2 (k + 1) frames a second: the mean of 200 and 100 over it.
            self.assertAlmostEqual(float(row["training_seconds"]), 150 / (k + 1), places=3)

    def test_time_is_that_of_the_frames_that_all_seeds_came_to(self):
        for seed, episodes in enumerate((2, 5)):
            _write_run(self._folder / str(seed), "minatar", 10.0, [1.0] * episodes)
        cell = agents_table._measure([self._folder / "0", self._folder / "1"])
        self.assertEqual((cell.env_frames, cell.seconds), (200, 20.0))

    def test_standings_over_both_games(self):
        self._write()
        rows = {row["label"]: row for row in _read(self._folder / "standings.csv")}
        self.assertEqual({row["mean_rank"] for row in rows.values()}, {"3"})  # 5 and 1, 4 and 2, ..
        for row in rows.values():
            self.assertAlmostEqual(float(row["elo"]), 0, places=6)
        scores = []
        for game, score in (("breakout", 1.0), ("space_invaders", 6.0)):
            random, laser = minatar.reference_scores()[game]
            scores.append((score - random) / (laser - random))
        of_laser = rows["LASER"]
        for name in ("median_normalised", "mean_normalised"):  # of two games the same
            self.assertAlmostEqual(float(of_laser[name]), sum(scores) / 2, places=4)

    def test_without_references_there_are_ranks_alone(self):
        self._write(suite="tmaze")
        for row in _read(self._folder / "standings.csv"):
            self.assertEqual((row["median_normalised"], row["mean_normalised"]), ("", ""))
            self.assertEqual(row["mean_rank"], "3")


if __name__ == "__main__":
    absltest.main()
