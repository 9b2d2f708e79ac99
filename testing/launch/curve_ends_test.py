"""The numbers of docs/, read off the curves' files."""

import pathlib
import tempfile

from absl.testing import absltest

from testing import commands

RUNS = """label,env_frames,mean,min,max,seeds
"LASER, large",1000,1.0,0.0,2.5,3
"LASER, large",2000,4.0,1.0,6.0,3
"LASER, large",3000,6.0,5.0,7.0,3
IMPALA,3000,2.0,2.0,2.0,1
"""
SWEEPS = """label,env_frames,mean,worst,best,replicas
shared,1000,0.2,0.1,0.3,2
shared,3000,0.6,0.5,0.7,2
"""


class CurveEndsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)

    def _write(self, name, text):
        (self._folder / name).write_text(text)
        return f"--csv={self._folder / name}"

    def _rows(self, *arguments):
        code, output, errors = commands.run("curve_ends", *arguments)
        self.assertEqual(code, 0, errors)
        return output.splitlines()[1:]

    def test_the_values_of_three_seeds_and_where_each_passes(self):
        rows = self._rows(self._write("runs.csv", RUNS), "--above=4.5")
        large = 'runs.csv,"LASER, large",3000,6.000,5.000 6.000 7.000,2000 2000 3000'
        self.assertEqual(rows, [large, "runs.csv,IMPALA,3000,2.000,2.000,nan"])

    def test_of_more_than_three_seeds_the_mean_alone_is_told(self):
        text = "label,env_frames,mean,min,max,seeds\nmany,1000,2,1,9,10\nmany,2000,5,3,9,10\n"
        rows = self._rows(self._write("runs.csv", text), "--above=4")
        self.assertEqual(rows, ["runs.csv,many,2000,5.000,,"])

    def test_sweeps_averaged_over_their_last_frames(self):
        rows = self._rows(self._write("sweeps.csv", SWEEPS), "--last_frames=4000")
        self.assertEqual(rows, ["sweeps.csv,shared,3000,0.400,0.300 0.500"])
        # Points are the middles of 2,000 frames: the last 2,000 have one of them, not two.
        rows = self._rows(self._write("sweeps.csv", SWEEPS), "--last_frames=2000")
        self.assertEqual(rows, ["sweeps.csv,shared,3000,0.600,0.500 0.700"])

    def test_curves_over_time_end_and_pass_after_seconds(self):
        timed = self._write("timed.csv", RUNS.replace("env_frames", "seconds"))
        code, output, errors = commands.run("curve_ends", timed, "--above=4.5")
        self.assertEqual(code, 0, errors)
        header, large, _ = output.splitlines()
        self.assertEqual(header, "file,label,seconds,mean,of_each,seconds_above_4.5")
        self.assertEndsWith(large, ",2000 2000 3000")

        code, _, errors = commands.run("curve_ends", timed, self._write("runs.csv", RUNS))
        self.assertEqual(code, 1)
        self.assertRegex(
            errors, r"^error: --csv=.*timed.csv is over seconds, another file [^\n]*\n$"
        )

    def test_a_games_curves_are_its_own(self):
        header, *rows = RUNS.splitlines()
        of_games = [f"{game},{row}" for game in ("pong", "qbert") for row in rows]
        of_games[-1] = "qbert,IMPALA,3000,9.0,9.0,9.0,1"
        rows = self._rows(self._write("games.csv", "\n".join([f"game,{header}", *of_games])))
        self.assertLen(rows, 4)
        self.assertEqual(rows[1], 'games.csv,"pong, IMPALA",3000,2.000,2.000')
        self.assertEqual(rows[3], 'games.csv,"qbert, IMPALA",3000,9.000,9.000')

    def test_points_that_not_all_replicas_have_come_to(self):
        fewer = "shared,3000,0.6,0.6,0.6,1\n"
        text = SWEEPS.replace("shared,3000,0.6,0.5,0.7,2\n", fewer)
        rows = self._rows(self._write("sweeps.csv", text), "--above=0.5")
        self.assertEqual(rows, ["sweeps.csv,shared,3000,0.600,0.600,3000 nan"])
        # A mean over points of different replicas would be of no replica.
        rows = self._rows(self._write("sweeps.csv", text), "--last_frames=4000")
        self.assertEqual(rows, ["sweeps.csv,shared,3000,0.400,"])

    def test_a_point_without_a_mean_passes_nothing(self):
        # A file of returns over the last million frames has none where no episode ended in them.
        rows = RUNS.replace(
            "IMPALA,3000,2.0,2.0,2.0,1", "IMPALA,3000,,,,1\nIMPALA,4000,2.0,2.0,2.0,1"
        )
        rows = self._rows(self._write("runs.csv", rows), "--above=1")
        self.assertEqual(rows[1], "runs.csv,IMPALA,4000,2.000,2.000,4000")

    def test_a_file_without_curves_is_refused_in_one_line(self):
        code, _, errors = commands.run("curve_ends", self._write("other.csv", "game,mean\na,1\n"))
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"^error: --csv=.*other.csv holds no curves: [^\n]*\n$")
        (self._folder / "picture.png").write_bytes(b"\x89PNG\r\n\xff\xfe")
        code, _, errors = commands.run("curve_ends", f"--csv={self._folder / 'picture.png'}")
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"^error: --csv=.*picture.png holds no curves: [^\n]*\n$")

    def test_a_damaged_file_is_refused_in_one_line(self):
        line = RUNS.splitlines()[2]
        for damaged in (line[: len(line) // 2], line.replace(",", ",x", 4)):
            text = "\n".join([*RUNS.splitlines()[:2], damaged])
            code, _, errors = commands.run("curve_ends", self._write("cut.csv", text))
            self.assertEqual(code, 1)
            self.assertRegex(errors, r"^error: --csv=.*cut.csv is damaged in line 3: [^\n]*\n$")


if __name__ == "__main__":
    absltest.main()
