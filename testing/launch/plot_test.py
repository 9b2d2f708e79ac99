"""The picture of learning curves says in words what it shows."""

import csv
import pathlib
import tempfile

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.analysis import seed_curves
from laser_tf.environments import episode_statistics
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.workdir import run_directory
from testing import commands, messages


class PlotTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        for seed in range(3):
            log = episode_log.EpisodeLog(self._folder / str(seed), ["pong"])
            (self._folder / str(seed)).mkdir()
            log.resume(None)
            for frames in range(0, 1_000, 100):
                log.add(frames, episode_statistics.Episode(0, 0, float(seed), 9))
            log.flush()

    def test_axes_in_words_and_all_numbers_beside_the_picture(self):
        one, two, three = (str(self._folder / str(seed)) for seed in range(3))
        output = self._folder / "curves.svg"
        code, _, errors = commands.run(
            "plot", f"--curve=LASER={one},{two},{three}", f"--curve=IMPALA={two},{three}",
            f"--output={output}", "--title=Pong",
        )  # fmt: skip
        self.assertEqual(code, 0, errors)
        picture = output.read_text()
        for words in (
            "Pong", "Million environment frames", "Episode return, mean of 100 episodes",
            "LASER (3 seeds)", "IMPALA (2 seeds)",
            "shaded: 95% bootstrap interval of the mean; thin: single seeds",
        ):  # fmt: skip
            self.assertIn(f"<!-- {words} -->", picture)  # Matplotlib's, beside the drawn letters
        with output.with_suffix(".csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertLen(rows, 400)
        self.assertEqual(
            rows[-1],
            {
                "label": "IMPALA", "env_frames": "900", "mean": "1.5", "interval_low": "",
                "interval_high": "", "min": "1", "max": "2", "seeds": "2",
            },
        )  # fmt: skip
        # With three seeds one draw in 27 holds nothing but the worst: the interval is the range.
        self.assertEqual((rows[0]["interval_low"], rows[0]["interval_high"]), ("0", "2"))

    def test_the_log_of_a_run_is_not_replaced(self):
        run = self._folder / "0"
        before = (run / "episodes.csv").read_text()
        curve, output = f"--curve=LASER={run}", f"--output={run}/episodes.png"
        code, _, errors = commands.run("plot", curve, output)
        self.assertEqual(code, 1)
        self.assertIn("episodes.csv, which is no table of launch.plot: give another name", errors)
        self.assertEqual((run / "episodes.csv").read_text(), before)
        for _ in range(2):  # its own table is
            code, _, errors = commands.run("plot", curve, f"--output={run}/curves.png")
            self.assertEqual(code, 0, errors)

    def test_over_time_of_training(self):
        for seed, pace in ((0, 10.0), (1, 5.0)):
            with tensorboard.MetricsWriter(self._folder / str(seed) / "tensorboard") as writer:
                for frames in (300, 900):
                    writer.write(frames, {"throughput/env_frames_per_second": pace})
        output = self._folder / "curves.svg"
        curves = (f"--curve={name}={self._folder / str(name)}" for name in (0, 1))
        code, _, errors = commands.run("plot", *curves, f"--output={output}", "--over=time")
        self.assertEqual(code, 0, errors)
        self.assertIn("<!-- Minutes of training -->", output.read_text())
        with output.with_suffix(".csv").open(newline="") as file:
            ends = {row["label"]: row["seconds"] for row in csv.DictReader(file)}
        self.assertEqual(ends, {"0": "90.00", "1": "180.00"})

    def test_over_time_a_curve_begins_with_its_first_episode(self):
        # Frames that become seconds and frames again may be a rounding before the episode's.
        for first in range(1, 400, 7):
            run = self._folder / f"first-{first}"
            run.mkdir()
            log = episode_log.EpisodeLog(run, ["pong"])
            log.resume(None)
            log.add(first, episode_statistics.Episode(0, 0, 1.0, 9))
            log.add(900, episode_statistics.Episode(0, 0, 1.0, 9))
            log.flush()
            with tensorboard.MetricsWriter(run / "tensorboard") as writer:
                for frames, pace in ((450, 7.3), (900, 9.1)):
                    writer.write(frames, {"throughput/env_frames_per_second": pace})
            seconds, summary = seed_curves.read([run], tensorboard.RETURN, over_seconds=True)
            self.assertEqual(summary.mean.tolist(), [1.0] * 200, first)
            # Shorter than 200 seconds, a curve of 200 points has several a second.
            self.assertLen(
                {row[0] for row in seed_curves.rows(seconds, summary, over_seconds=True)}, 200
            )

    def test_over_time_a_run_without_rows_is_refused_in_one_line(self):
        output = f"--output={self._folder / 'curves.png'}"
        for flag in ("--over=time", "--metric=loss/total"):
            code, _, errors = commands.run("plot", f"--curve=a={self._folder / '0'}", output, flag)
            self.assertEqual(code, 1)
            self.assertRegex(errors, r"^error: .*/0 holds no values of [^\n]*\n$")

    def test_a_label_or_a_run_that_would_be_lost_is_refused(self):
        first, second = (str(self._folder / str(seed)) for seed in range(2))
        for curves, message in (
            ((f"a={first}", f"a={second}"), "--curve=a=.*: there is one of that label already"),
            ((f"a={first},{second},{first}/",), "--curve=a=.*: /.*/0 is in it twice"),
            ((f"={first}",), "--curve==.*: .* no label .* give another"),
            ((f"_a={first}",), "--curve=_a=.*: .* an underscore: give another"),
        ):
            code, _, errors = commands.run("plot", *(f"--curve={curve}" for curve in curves))
            self.assertEqual(code, 1)
            self.assertRegex(errors, f"^error: {message}[^\n]*\n$")

    def test_a_folder_may_have_a_comma(self):
        run = self._folder / "breakout,asterix"
        (self._folder / "0").rename(run)
        output = self._folder / "curves.svg"
        code, _, errors = commands.run("plot", f"--curve=a={run}", f"--output={output}")
        self.assertEqual(code, 0, errors)


class RefusalTest(parameterized.TestCase):
    def test_a_folder_without_a_run_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (pathlib.Path(folder), pathlib.Path(folder) / "none"):
                with self.assertRaisesRegex(errors.UserError, f"{path} holds no run"):
                    seed_curves.read([path], "loss/total")

    def test_a_sweeps_folder_is_told_from_a_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "tensorboard").mkdir()
            (path / "sweep.json").write_text('{"config": {}}')
            for name in ("agent_01", "agent_00"):
                (path / name).mkdir()
                (path / name / "config.json").write_text('{"config": {}}')
            for ask in (
                lambda: seed_curves.read([path], "x"),
                lambda: run_directory.read_config(path),
            ):
                with messages.raises(run_directory.WorkdirError, path, f"{path}/agent_00"):
                    ask()

    def test_episodes_out_of_order_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "episodes.csv"
            log = episode_log.EpisodeLog(path.parent, ["game"])
            log.resume(None)
            for frames in (100, 200):
                log.add(frames, episode_statistics.Episode(0, 0, 1.0, 9))
            log.flush()
            header, *rows = path.read_text().splitlines()
            path.write_text("\n".join([header, *reversed(rows)]) + "\n")
            with self.assertRaisesRegex(errors.UserError, f"{path} has episodes that are not in"):
                seed_curves.read([path.parent], tensorboard.RETURN)

    @parameterized.parameters(
        ("--output=o.xyz", "--output=o.xyz: end it in .png"),
        ("--output=folder", "--output=folder: end it in .png"),
        ("--output=o.pgf", "--output=o.pgf: end it in .png"),
        ("--title=$\\frac{$", "holds mathematics that Matplotlib cannot read"),
        ("--curve=$x_$=a", "'$x_$' holds mathematics"),
        ("--title=loss at 3 $", "runs/none holds no run: name the folder of one"),
    )
    def test_what_cannot_be_drawn_is_refused_in_one_line_and_nothing_is_written(
        self, flag, message
    ):
        with tempfile.TemporaryDirectory() as folder:
            output = f"--output={folder}/deep/picture.png"
            code, _, errors = commands.run("plot", "--curve=a=runs/none", output, flag)
            self.assertEqual(code, 1)
            self.assertLen(errors.splitlines(), 1, errors)
            self.assertStartsWith(errors, "error: ")
            self.assertIn(message, errors)
            self.assertEmpty(list(pathlib.Path(folder).iterdir()))


if __name__ == "__main__":
    absltest.main()
