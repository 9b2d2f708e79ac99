"""The five games of Atari-5 from the files of small runs with results by hand."""

import itertools
from unittest import mock

import numpy as np
from absl.testing import absltest

from laser_tf import errors
from laser_tf.plotting import atari5, curves
from laser_tf.scores import atari5 as scores
from laser_tf.scores import reference
from testing import folders
from testing.plotting import run_logs

MILLION = 1_000_000
FACTORS = dict(zip(scores.GAMES, (2.0, 1.0, 1.0, 0.5, 1.0), strict=True))  # of scores


def _raw(game, score):
    """Returns the return of a human-normalised score."""
    random, human = reference.reference_scores("atari")[game]
    return random + score * (human - random)


def _write_run(folder, game, trained, score_of_million, first=100_000):
    """Writes a run with an episode every 100,000 frames, whose scores grow by steps."""
    episodes = [
        (frames, 0, _raw(game, FACTORS[game] * score_of_million * -(-frames // MILLION)))
        for frames in range(first, trained + 1, 100_000)
    ]
    return run_logs.write_run(folder, episodes, tasks=[game], seconds={trained: 1.0}, suite="atari")


class Atari5Test(absltest.TestCase):
    """LASER's scores grow by 0.2 (seed 1) and 0.4 per million frames, IMPALA's by 0.1.

    Those of battle_zone are twice as high, those of phoenix half as high.
    LASER trains for 4 million frames, seed 2 of qbert for 3.5 million. IMPALA trains for 4 million
    on all games, and seed 1 of phoenix ends no episode before 500,000. ACER has qbert only, and one
    directory without an episode.
    """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._folder = folders.of_class(cls)
        runs = {}
        for game in scores.GAMES:
            runs[game] = {
                label: [cls._folder / game / f"{label}_{seed}" for seed in range(2)]
                for label in ("LASER", "IMPALA", "ACER", "R2D2")
            }
            for label, growths in (("LASER", (0.2, 0.4)), ("IMPALA", (0.1,))):
                for growth, run in zip(growths, runs[game][label], strict=False):
                    stops = game == "qbert" and growth == 0.4
                    is_late = game == "phoenix" and label == "IMPALA"
                    first = 500_000 if is_late else 100_000
                    _write_run(run, game, 3_500_000 if stops else 4 * MILLION, growth, first)
        _write_run(runs["phoenix"]["IMPALA"][1], "phoenix", 4 * MILLION, 0.1)
        _write_run(runs["qbert"]["ACER"][0], "qbert", 4 * MILLION, 0.25)
        _write_run(runs["qbert"]["ACER"][1], "qbert", 0, 0.2)
        with mock.patch.object(curves, "save", wraps=curves.save) as save:
            atari5.write(runs, cls._folder)
        cls._figure = save.call_args.args[0]

    def _rows(self, name, *columns):
        rows = run_logs.read_csv(self._folder / name)
        return {tuple(row[column] for column in columns): row for row in rows}

    def test_returns_are_of_runs_that_reached_the_milestone(self):
        rows = self._rows("returns.csv", "game", "label", "env_frames")
        self.assertEqual(rows["phoenix", "LASER", "4000000"]["seeds"], "2")
        self.assertEqual(rows["qbert", "LASER", "4000000"]["seeds"], "1")
        value = float(rows["qbert", "LASER", "4000000"]["human_normalised"])
        self.assertAlmostEqual(value, 0.8, places=4)
        self.assertAlmostEqual(
            float(rows["phoenix", "LASER", "2000000"]["human_normalised"]), 0.3, places=4
        )
        self.assertNotIn(("qbert", "R2D2", "1000000"), rows)

    def test_summary_estimates_the_median_of_complete_labels(self):
        rows = self._rows("summary.csv", "agent", "env_frames")
        laser, acer = rows["LASER", "2000000"], rows["ACER", "2000000"]
        self.assertEqual((laser["games"], laser["seeds"]), ("5", "2"))
        factors = np.array(list(FACTORS.values()))
        estimate = scores.estimate_median(0.6 * factors)
        self.assertAlmostEqual(float(laser["estimate"]), estimate, places=4)
        low, high = (scores.estimate_median(score * factors) for score in (0.4, 0.8))
        self.assertBetween(float(laser["low"]), low, estimate)
        self.assertBetween(float(laser["high"]), estimate, high)
        self.assertAlmostEqual(float(laser["regression_error"]), 0.104 * estimate, places=4)
        self.assertEqual((acer["games"], acer["estimate"]), ("1", ""))
        late = rows["LASER", "4000000"]
        self.assertEqual((late["seeds"], late["low"]), ("1", ""))

    def test_published_agents_have_estimate_and_median(self):
        rows = self._rows("summary.csv", "agent", "env_frames")
        iqn = rows["IQN", "4000000"]
        self.assertAlmostEqual(float(iqn["published_median"]), 0.305, places=3)
        self.assertAlmostEqual(float(iqn["estimate"]), 0.349, places=3)
        published = [key for key in rows if key[0] in reference.DOPAMINE_AGENTS]
        frames = ("4000000", "10000000", "20000000", "50000000")
        self.assertEqual(set(published), set(itertools.product(reference.DOPAMINE_AGENTS, frames)))

    def test_frames_to_reach_the_last_score_of_impala(self):
        rows = self._rows("reached.csv", "game", "agent")
        # Without the factors IMPALA ends at 0.4, and LASER's mean of two seeds is 0.36 after 1.25
        # million frames and 0.45 after 1.5 million.
        phoenix = rows["phoenix", "LASER"]
        self.assertEqual(phoenix["baseline_env_frames"], "4000000")
        self.assertEqual(phoenix["reached_env_frames"], "1500000")
        self.assertEqual(rows[atari5.ESTIMATE, "LASER"]["reached_env_frames"], "1500000")
        self.assertEqual(rows["qbert", "ACER"]["reached_env_frames"], "1750000")
        self.assertNotIn((atari5.ESTIMATE, "ACER"), rows)

    def test_figure_is_written(self):
        self.assertEqual((self._folder / "curves.png").read_bytes()[:4], b"\x89PNG")

    def test_figure_has_the_interval_of_each_estimate(self):
        rows = self._rows("summary.csv", "agent", "env_frames")
        expected = {
            (float(frames) / 1e6, float(row["low"]), float(row["high"]))
            for (_, frames), row in rows.items()
            if row["low"]
        }
        bars = self._figure.axes[len(scores.GAMES)].containers
        drawn = [bar.lines[2][0].get_segments()[0] for bar in bars]
        self.assertLen(drawn, 2)  # LASER at one and two million frames; IMPALA has one seed.
        np.testing.assert_allclose(
            sorted((start[0], start[1], end[1]) for start, end in drawn),
            sorted(expected),
            rtol=1e-4,
        )


class NoRunsTest(folders.FolderTest):
    def test_no_runs_are_rejected(self):
        with self.assertRaises(errors.UserError):
            atari5.write({"phoenix": {"LASER": [self._folder / "missing"]}}, self._folder)


if __name__ == "__main__":
    absltest.main()
