"""The numbers in ACER's figures, from small runs' files with hand-computed results."""

import csv
import pathlib
import tempfile
from collections.abc import Sequence

import numpy as np
from absl.testing import absltest

from laser_tf import errors
from laser_tf.analysis import acer_curves, figures_acer, game_curves, wall_clock
from laser_tf.environments import episode_statistics
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.workdir import run_directory

PACE = "throughput/env_frames_per_second"


def _read(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write_run(folder: pathlib.Path, rows: Sequence[tuple[int, float, float]]) -> None:
    """Rows are env frames, the pace since the row before, and the return of an episode."""
    run_directory.open_workdir(folder, {"run": {"env_frames": 100}}, {})
    log = episode_log.EpisodeLog(folder, ["game"])
    log.resume(None)
    with tensorboard.MetricsWriter(folder / "tensorboard") as writer:
        for frames, pace, value in rows:
            writer.write(frames, {PACE: pace})
            log.add(frames, episode_statistics.Episode(0, 0, value, 9))
    log.flush()


class AcerCurvesTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)

    def _runs(self, name: str, games: Sequence[str], replicas: int):
        return figures_acer.FIGURES[name].runs(self._folder, games, replicas)

    def _assert_is_picture(self, name: str) -> None:
        self.assertEqual((self._folder / name).read_bytes()[:4], b"\x89PNG")

    def test_seconds_are_frames_over_the_pace_of_each_stretch(self):
        # Where a command went on with the run, the first row of older versions has no pace.
        paces = [(30, 0.0), (100, 50.0), (250, 0.0), (400, 100.0), (500, 10.0)]
        _write_run(self._folder / "run", [(frames, pace, 0) for frames, pace in paces])
        frames, seconds = wall_clock.read(self._folder / "run")
        np.testing.assert_allclose(frames, [0, 100, 400, 500])
        np.testing.assert_allclose(seconds, [0, 2, 5, 15])

    def test_a_run_that_logged_no_pace_is_named(self):
        (self._folder / "run/tensorboard").mkdir(parents=True)
        with self.assertRaisesRegex(errors.UserError, "run holds no values of throughput/env_fr"):
            wall_clock.read(self._folder / "run")

    def test_an_axis_of_time_has_a_unit_that_it_holds_some_of(self):
        minutes, hours = (game_curves.axis(x, over_seconds=True) for x in (145.0, 7_200.0))
        self.assertEqual(minutes, (60, "Minutes of training"))
        self.assertEqual(hours, (3_600, "Hours of training"))

    def test_replay_is_compared_by_frames_and_by_time(self):
        runs = self._runs("acer_1", ("breakout", "asterix"), 1)
        for of_game in runs.values():
            for k, (run,) in enumerate(of_game.values()):
                pace = 10.0 / (k + 1)  # the more replay, the slower
                _write_run(run, [(100, pace, 0.0), (200, pace, 2.0 * (k + 1))])
        acer_curves.write_by_experience_and_time(runs, self._folder)
        self._assert_is_picture("curves.png")
        frames, times = (_read(self._folder / f"by_{name}.csv") for name in ("frames", "time"))
        labels = [condition.label for condition in figures_acer.FIGURES["acer_1"].conditions]
        for rows, unit in ((frames, "env_frames"), (times, "seconds")):
            self.assertEqual(
                [(row["game"], row["label"]) for row in rows[::200]],
                [(game, label) for game in runs for label in labels],
            )
            for k in range(2 * len(labels)):
                first, last = rows[200 * k], rows[200 * k + 199]
                factor = 1 if unit == "env_frames" else (k % len(labels) + 1) / 10
                self.assertAlmostEqual(float(first[unit]), 100 * factor, delta=1)
                self.assertAlmostEqual(float(last[unit]), 200 * factor, delta=1)
                self.assertEqual(float(first["mean"]), 0)
                self.assertEqual(float(last["mean"]), k % len(labels) + 1)

    def test_methods_are_compared_by_the_seeds_mean_and_standard_deviation(self):
        runs = self._runs("acer_2", ("cheetah/run",), 3)
        for k, of_method in enumerate(runs["cheetah/run"].values()):
            for seed, run in enumerate(of_method):
                _write_run(run, [(10, 1.0, 0.0), (100, 1.0, 2.0 * (k + seed))])
        acer_curves.write_with_deviations(runs, self._folder)
        self._assert_is_picture("curves.png")
        rows = _read(self._folder / "curves.csv")
        self.assertEqual(
            [row["label"] for row in rows[::200]], ["ACER", "Trust-TIS", "TIS", "Trust-A3C", "A3C"]
        )
        for k, last in enumerate(rows[199::200]):
            self.assertEqual((last["game"], last["env_frames"]), ("cheetah/run", "100"))
            self.assertEqual((float(last["mean"]), last["seeds"]), (k + 1, "3"))
            self.assertAlmostEqual(float(last["standard_deviation"]), (2 / 3) ** 0.5, places=3)


if __name__ == "__main__":
    absltest.main()
