"""LASER beside Dopamine's agents, from small runs' files with hand-computed results."""

import csv
import pathlib
import tempfile
from collections.abc import Sequence

from absl.testing import absltest

from laser_tf import errors
from laser_tf.analysis import atari_comparison, atari_episodes, figure, figures_atari
from laser_tf.environments import episode_statistics
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.scores import atari57, dopamine
from laser_tf.workdir import run_directory

MILLION = 1_000_000
GAMES = ("pong", "breakout")


def _read(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write_run(
    folder: pathlib.Path, env_frames: int, episodes: Sequence[tuple[int, float]]
) -> None:
    """Of episodes (env frames at its end, return), trained for `env_frames`."""
    run_directory.open_workdir(folder, {"environment": {"suite": "atari"}}, {})
    log = episode_log.EpisodeLog(folder, [folder.name])
    log.resume(None)
    with tensorboard.MetricsWriter(folder / "tensorboard") as writer:
        writer.write(env_frames, {"throughput/env_frames_per_second": 100.0})
    for frames, value in episodes:
        log.add(frames, episode_statistics.Episode(0, 0, value, 9))
    log.flush()


def _normalised(game: str, value: float) -> float:
    random, human = atari57.reference_scores()[game]
    return (value - random) / (human - random)


def _runs(folder: pathlib.Path, games: Sequence[str] = GAMES, seeds: int = 2) -> figure.Runs:
    return figures_atari.FIGURES["atari"].runs(folder, games, seeds)


class MilestonesTest(absltest.TestCase):
    """Two seeds to 4.2 and 4.0 million frames.

    Within the million frames before 1 and 4 million pong returns -15 and 2, seed 2 4 more;
    breakout 3 and 20, seed 2 as much. In the million before 2 million both return 0.
    """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        runs = _runs(cls._folder)
        for game, early, late, more in (("pong", -15.0, 2.0, 4.0), ("breakout", 3.0, 20.0, 0.0)):
            for seed, run in enumerate(runs[game]["LASER"]):
                add = more * seed
                episodes = (
                    *((400_000, early + add - 1), (MILLION, early + add + 1)),
                    *((MILLION + 1, 0.0), (2 * MILLION, 0.0), (3 * MILLION, -99.0)),
                    *((3 * MILLION + 1, late + add + 2), (4 * MILLION, late + add - 2)),
                )
                _write_run(run, 4_200_000 - 200_000 * seed, episodes)
        atari_comparison.write(runs, cls._folder)

    def _summary(self):
        rows = _read(self._folder / "summary.csv")
        return {(int(row["env_frames"]) // MILLION, row["agent"]): row for row in rows}

    def test_returns_are_means_over_the_million_frames_before(self):
        rows = {
            (row["game"], int(row["env_frames"])): row
            for row in _read(self._folder / "returns.csv")
        }
        self.assertEqual(list(rows), [(game, n * MILLION) for game in GAMES for n in (1, 2, 4)])
        pong = rows["pong", 4 * MILLION]
        self.assertEqual([float(pong[name]) for name in ("mean", "min", "max")], [4, 2, 6])
        self.assertEqual((pong["label"], pong["seeds"], pong["interval_low"]), ("LASER", "2", ""))
        self.assertAlmostEqual(float(pong["human_normalised"]), _normalised("pong", 4), places=4)
        for name, value in dopamine.curves()["pong"].items():
            self.assertEqual(float(pong[name.lower()]), value[4 * MILLION])
            self.assertAlmostEqual(
                float(pong[f"{name.lower()}_human_normalised"]),
                _normalised("pong", value[4 * MILLION]),
                places=4,
            )
        self.assertEqual(float(rows["breakout", MILLION]["mean"]), 3)
        self.assertEqual(rows["pong", 2 * MILLION]["iqn"], "")  # none is published
        self.assertEqual(float(rows["pong", 2 * MILLION]["mean"]), 0)

    def test_the_summary_is_over_both_games(self):
        rows = self._summary()
        self.assertEqual(
            list(rows),
            [(1, "LASER"), (1, "DQN"), (1, "Rainbow"), (1, "IQN"), (2, "LASER")]
            + [(4, "LASER"), (4, "DQN"), (4, "Rainbow"), (4, "IQN")],
        )
        self.assertEqual({row["games"] for row in rows.values()}, {"2"})
        laser, iqn = rows[4, "LASER"], rows[4, "IQN"]
        pong, breakout = _normalised("pong", 4), _normalised("breakout", 20)
        for measure in ("median", "mean"):  # of two games the same
            self.assertAlmostEqual(float(laser[measure]), (pong + breakout) / 2, places=4)
        # Of two seeds the middle half are two of four.
        middle = sorted([_normalised("pong", 2), _normalised("pong", 6), breakout, breakout])[1:3]
        self.assertAlmostEqual(float(laser["interquartile_mean"]), sum(middle) / 2, places=4)
        low, high = ((_normalised("pong", value) + breakout) / 2 for value in (2, 6))
        self.assertAlmostEqual(float(laser["median_low"]), low, places=4)
        self.assertAlmostEqual(float(laser["median_high"]), high, places=4)
        published = [_normalised(g, dopamine.curves()[g]["IQN"][4 * MILLION]) for g in GAMES]
        for measure in ("median", "mean", "interquartile_mean"):
            self.assertAlmostEqual(float(iqn[measure]), sum(published) / 2, places=4)
            self.assertEqual(iqn[f"{measure}_low"], "")
        self.assertEqual((laser["seeds"], iqn["seeds"]), ("2", "5"))

    def test_the_probability_of_improvement_is_over_each_published_agent(self):
        rows = self._summary()
        # At 4 million IQN returns -1.76 in pong and 31.55 in breakout, DQN -16.58 and 6.69.
        self.assertEqual(float(rows[4, "IQN"]["probability_of_improvement"]), 0.5)
        self.assertEqual(float(rows[4, "DQN"]["probability_of_improvement"]), 1.0)
        # At 1 million IQN -19.42 and 4.1.
        self.assertEqual(float(rows[1, "IQN"]["probability_of_improvement"]), 0.5)
        self.assertEqual(rows[4, "LASER"]["probability_of_improvement"], "")

    def test_the_picture_and_its_numbers(self):
        self.assertEqual((self._folder / "curves.png").read_bytes()[:4], b"\x89PNG")
        rows = [row for row in _read(self._folder / "curves.csv") if row["game"] == "pong"]
        self.assertEqual((rows[0]["env_frames"], rows[-1]["env_frames"]), ("400000", "4000000"))
        self.assertEqual([float(rows[0]["mean"]), float(rows[-1]["mean"])], [-14, 4])


class ShortRunsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def test_a_shorter_run_is_compared_at_its_end(self):
        runs = _runs(self._folder, ["pong", "qbert"], 1)
        _write_run(runs["pong"]["LASER"][0], 20_080, [(9_000, -21.0), (20_000, -19.0)])
        _write_run(runs["qbert"]["LASER"][0], 20_160, [(20_100, 100.0)])  # none at 20,080 yet
        atari_comparison.write(runs, self._folder)
        pong, qbert = _read(self._folder / "returns.csv")
        self.assertEqual((pong["env_frames"], pong["mean"], pong["rainbow"]), ("20080", "-20", ""))
        self.assertEqual((qbert["mean"], qbert["human_normalised"]), ("", ""))
        (laser,) = _read(self._folder / "summary.csv")
        self.assertEqual((laser["games"], laser["seeds"]), ("1", "1"))
        self.assertAlmostEqual(float(laser["median"]), _normalised("pong", -20), places=4)
        self.assertEqual(laser["median_low"], "")

    def test_published_curves_end_where_the_run_does(self):
        points = dict.fromkeys((MILLION, 4 * MILLION, 10 * MILLION), 0.0)
        numbers = {99_999: 0, 100_000: 1, 3_999_999: 1, 4_000_160: 2, 10_000_160: 3}
        for last, number in numbers.items():
            self.assertLen(atari_comparison.points_beside(points, last), number)

    def test_kept_episodes_are_drawn_as_their_runs_were(self):
        runs = _runs(self._folder, GAMES, 1)
        _write_run(runs["pong"]["LASER"][0], 20_080, [(9_000, -21.0), (20_000, -19.0)])
        _write_run(runs["breakout"]["LASER"][0], 30_080, [(9_000, 1.0)])
        whole, joined, again = (self._folder / name for name in ("whole", "joined", "again"))
        for folder in (whole, joined, again):
            folder.mkdir()
        atari_comparison.write(runs, whole)
        atari_comparison.write({}, again, [whole / atari_episodes.FILE])
        pong, breakout = ({game: runs[game]} for game in GAMES)
        atari_comparison.write(breakout, joined)
        atari_comparison.write(pong, joined, [joined / atari_episodes.FILE])
        for folder in (joined, again):
            for name in ("curves.csv", "returns.csv", "summary.csv", "curves.png"):
                self.assertEqual((folder / name).read_bytes(), (whole / name).read_bytes(), name)

    def test_a_run_without_episodes_is_named(self):
        runs = _runs(self._folder, ["pong"], 1)
        with self.assertRaisesRegex(errors.UserError, "laser/replica_1/pong holds no finished"):
            atari_comparison.write(runs, self._folder)
        _write_run(runs["pong"]["LASER"][0], 20_080, [])
        with self.assertRaisesRegex(errors.UserError, "wait for its first one, or train"):
            atari_comparison.write(runs, self._folder)


if __name__ == "__main__":
    absltest.main()
