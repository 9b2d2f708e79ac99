"""LASER next to Dopamine's agents, from the files of small runs with results by hand."""

import numpy as np
import pandas as pd
from absl.testing import absltest

from laser_tf.plotting import atari
from laser_tf.scores import reference
from testing import folders, processes
from testing.plotting import run_logs

MILLION = 1_000_000
GAMES = ("pong", "breakout")


def _normalised(game, value):
    return reference.normalised("atari", game, value)


def _published(game, agent):
    curves = reference.dopamine_curves().set_index(["game", "agent", "env_frames"])["value"]
    return curves[game, agent, 4 * MILLION]


def _write_run(folder, game, trained, episodes):
    return run_logs.write_run(
        folder,
        [(frames, 0, value) for frames, value in episodes],
        tasks=[game],
        seconds={trained: 1.0},
        suite="atari",
    )


class MilestonesTest(absltest.TestCase):
    """Two seeds to 4.2 and 4.0 million frames.

    Within the million frames before 1 and 4 million pong returns -15 and 2, seed 2 4 more;
    breakout 3 and 20, seed 2 as much. In the million before 2 million both return 0.
    """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._folder = folders.of_class(cls)
        runs = {}
        for game, early, late, more in (("pong", -15.0, 2.0, 4.0), ("breakout", 3.0, 20.0, 0.0)):
            runs[game] = {"LASER": []}
            for seed in range(2):
                add = more * seed
                episodes = (
                    *((400_000, early + add - 1), (MILLION, early + add + 1)),
                    *((MILLION + 1, 0.0), (2 * MILLION, 0.0), (3 * MILLION, -99.0)),
                    *((3 * MILLION + 1, late + add + 2), (4 * MILLION, late + add - 2)),
                )
                folder = cls._folder / game / str(seed)
                trained = 4_200_000 - 200_000 * seed
                runs[game]["LASER"].append(_write_run(folder, game, trained, episodes))
        atari.write(runs, cls._folder)

    def test_returns_are_means_over_the_million_frames_before(self):
        rows = {
            (row["game"], int(row["env_frames"])): row
            for row in run_logs.read_csv(self._folder / "returns.csv")
        }
        self.assertEqual(list(rows), [(game, n * MILLION) for game in GAMES for n in (1, 2, 4)])
        pong = rows["pong", 4 * MILLION]
        self.assertEqual([float(pong[name]) for name in ("mean", "min", "max")], [4, 2, 6])
        self.assertEqual((pong["label"], pong["seeds"], pong["interval_low"]), ("LASER", "2", ""))
        self.assertAlmostEqual(float(pong["human_normalised"]), _normalised("pong", 4), places=4)
        for name in reference.DOPAMINE_AGENTS:
            self.assertEqual(float(pong[name.lower()]), _published("pong", name))
        self.assertEqual(float(rows["breakout", MILLION]["mean"]), 3)
        self.assertEqual(rows["pong", 2 * MILLION]["iqn"], "")  # none is published
        self.assertEqual(float(rows["pong", 2 * MILLION]["mean"]), 0)

    def test_summary_is_over_both_games(self):
        rows = {
            (int(row["env_frames"]) // MILLION, row["agent"]): row
            for row in run_logs.read_csv(self._folder / "summary.csv")
        }
        published = ["DQN", "Rainbow", "IQN"]
        self.assertEqual(
            list(rows),
            [(1, "LASER"), (2, "LASER"), (4, "LASER"), *((4, agent) for agent in published)],
        )
        laser, iqn = rows[4, "LASER"], rows[4, "IQN"]
        pong, breakout = _normalised("pong", 4), _normalised("breakout", 20)
        for measure in ("median", "mean"):  # equal for two games
            self.assertAlmostEqual(float(laser[measure]), (pong + breakout) / 2, places=4)
        middle = sorted([_normalised("pong", 2), _normalised("pong", 6), breakout, breakout])[1:3]
        self.assertAlmostEqual(float(laser["interquartile_mean"]), sum(middle) / 2, places=4)
        low, high = ((_normalised("pong", value) + breakout) / 2 for value in (2, 6))
        self.assertAlmostEqual(float(laser["median_low"]), low, places=4)
        self.assertAlmostEqual(float(laser["median_high"]), high, places=4)
        scores = [_normalised(g, _published(g, "IQN")) for g in GAMES]
        for measure in ("median", "mean", "interquartile_mean"):
            self.assertAlmostEqual(float(iqn[measure]), sum(scores) / 2, places=4)
        self.assertEqual((laser["seeds"], iqn["seeds"], iqn["median_low"]), ("2", "5", ""))
        # At 4 million frames IQN returns -1.76 in pong and 31.55 in breakout, DQN -16.58 and 6.69.
        self.assertEqual(float(iqn["probability_of_improvement"]), 0.5)
        self.assertEqual(float(rows[4, "DQN"]["probability_of_improvement"]), 1.0)

    def test_episodes_of_all_runs_are_written(self):
        table = pd.read_csv(self._folder / atari.EPISODES_FILE)
        columns = ["game", "label", "run", "trained_env_frames", "env_frames", "return"]
        self.assertEqual(list(table.columns), columns)
        self.assertEqual(
            table.iloc[-1].to_list(), ["breakout", "LASER", 2, 4 * MILLION, 4 * MILLION, 18.0]
        )
        self.assertLen(table, 2 * 2 * 7)

    def test_figure_and_its_numbers_are_written(self):
        self.assertEqual((self._folder / "curves.png").read_bytes()[:4], b"\x89PNG")
        rows = run_logs.read_csv(self._folder / "curves.csv")
        pong = [row for row in rows if row["game"] == "pong"]
        self.assertEqual((pong[0]["env_frames"], pong[-1]["env_frames"]), ("400000", "4000000"))
        self.assertEqual([float(pong[0]["mean"]), float(pong[-1]["mean"])], [-14, 4])


class KeepEpisodesTest(folders.FolderTest):
    def test_full_disk_keeps_the_earlier_episodes(self):
        path = self._folder / atari.EPISODES_FILE
        path.write_text("earlier")
        episodes = pd.DataFrame({"return": np.random.default_rng(1).random(100)})
        with processes.full_disk(100), self.assertRaises(OSError):
            atari.keep_episodes([episodes], self._folder)
        self.assertEqual(path.read_text(), "earlier")


class ShortRunTest(folders.FolderTest):
    def test_shorter_run_is_compared_at_its_end(self):
        run = _write_run(self._folder / "p", "pong", 20_080, [(9_000, -21.0), (20_000, -19.0)])
        atari.write({"pong": {"LASER": [run]}}, self._folder)
        (row,) = run_logs.read_csv(self._folder / "returns.csv")
        self.assertEqual((row["env_frames"], row["mean"], row["rainbow"]), ("20080", "-20", ""))


if __name__ == "__main__":
    absltest.main()
