"""launch.plot: figures of curves, ends of curves, and bad input."""

import pathlib

from absl.testing import absltest, parameterized

from testing import commands
from testing.plotting import run_logs

RUNS = """label,env_frames,mean,min,max,seeds
"LASER, large",1000,1.0,0.0,2.5,3
"LASER, large",2000,4.0,1.0,6.0,3
"LASER, large",3000,6.0,5.0,7.0,3
IMPALA,3000,2.0,2.0,2.0,1
"""


class PlotTest(commands.CommandTest):
    def setUp(self):
        super().setUp()
        self._folder = self.workdir.parent

    def _write_runs(self):
        for seed in range(3):
            episodes = [(frames, 0, float(seed)) for frames in range(0, 1_000, 100)]
            seconds = {300: 30.0, 900: 90.0}
            run_logs.write_run(self._folder / str(seed), episodes, tasks=["a"], seconds=seconds)
        return [str(self._folder / str(seed)) for seed in range(3)]

    def test_curves_are_drawn_and_written_to_a_table(self):
        one, two, three = self._write_runs()
        output = self._folder / "curves.svg"
        self.succeed(
            "plot", f"--curve=LASER={one},{two},{three}", f"--curve=IMPALA={two},{three}",
            f"--output={output}", "--title=Pong $",
        )  # fmt: skip
        for words in ("Pong $", "LASER (3 seeds)", "IMPALA (2 seeds)"):
            self.assertIn(f"<!-- {words} -->", output.read_text())
        rows = run_logs.read_csv(output.with_suffix(".csv"))
        self.assertLen(rows, 400)
        self.assertEqual(
            rows[-1],
            {
                "label": "IMPALA", "env_frames": "900", "mean": "1.5", "interval_low": "",
                "interval_high": "", "min": "1", "max": "2", "seeds": "2",
            },
        )  # fmt: skip

    def test_curves_over_time_have_seconds(self):
        run, *_ = self._write_runs()
        moved = self._folder / "breakout,asterix"  # A directory may have a comma.
        pathlib.Path(run).rename(moved)
        output = self._folder / "curves.png"
        self.succeed("plot", f"--curve=a={moved}", f"--output={output}", "--over=time")
        self.assertEqual(run_logs.read_csv(output.with_suffix(".csv"))[-1]["seconds"], "90.00")

    def test_log_of_a_run_is_not_replaced(self):
        run, *_ = self._write_runs()
        log = pathlib.Path(run) / "episodes.csv"
        before = log.read_text()
        output = f"--output={run}/episodes.png"
        self.assert_rejected((log,), "plot", f"--curve=LASER={run}", output)
        self.assertEqual(log.read_text(), before)

    @parameterized.parameters(
        (("--curve=a=x", "--curve=a=y"), ("--curve=a=y",)),
        (("--curve=a=x,y,x/",), ("a=x,y,x/",)),
        (("--curve=a=runs/none",), ("runs/none",)),
        (("--curve=a=x", "--output=o.xyz"), ("--output", "o.xyz")),
        (("--curve=a=x", "--output=.."), ("--output", "..")),
        (("--curve=a=",), ("--curve", "a=")),
        (("--curve=a=x,",), ("--curve", "a=x,")),
        (("--curve=a=x", "--report=y"), ("--curve", "--report")),
        ((), ("--curve", "--report", "--csv", "--track")),
        (("--track=wandb", "--output=o.png"), ("--output", "o.png")),
        (("--report=runs/none", "--metric=loss/total"), ("--metric", "--report")),
        (("--report=runs/none",), ("runs/none",)),
    )
    def test_bad_input_is_rejected_and_nothing_written(self, arguments, named):
        output = (
            () if any("--output" in a for a in arguments) else (f"--output={self._folder}/a/b.png",)
        )
        self.assert_rejected(named, "plot", *arguments, *output)
        self.assertEmpty(list(self._folder.iterdir()))

    def test_tracking_needs_a_run(self):
        self.assert_rejected(("--workdir",), "plot", "--track=wandb")


class CurveEndsTest(commands.CommandTest):
    def setUp(self):
        super().setUp()
        self._path = self.workdir.with_name("runs.csv")

    def _rows(self, text, *arguments):
        self._path.write_text(text)
        output, _ = self.succeed("plot", f"--csv={self._path}", *arguments)
        return output.splitlines()

    def test_rows_have_end_and_first_point_above_a_value(self):
        header, *rows = self._rows(RUNS, "--above=3")
        self.assertEqual(header, "file,label,env_frames,mean,min,max,env_frames_above_3")
        self.assertEqual(rows[0], 'runs.csv,"LASER, large",3000,6,5,7,2000')
        self.assertEqual(rows[1], "runs.csv,IMPALA,3000,2,2,2,")

    def test_end_is_the_mean_over_the_last_frames(self):
        _, large, _ = self._rows(RUNS, "--last_frames=2000")
        self.assertEqual(large, 'runs.csv,"LASER, large",3000,5,3,6.5')

    def test_seconds_replace_env_frames(self):
        header, *_ = self._rows(RUNS.replace("env_frames", "seconds"), "--above=3")
        self.assertEqual(header, "file,label,seconds,mean,min,max,seconds_above_3")

    def test_end_at_large_numbers_of_frames_has_a_mean(self):
        _, _, impala = self._rows(RUNS.replace("3000", "200000000"))
        self.assertEqual(impala, "runs.csv,IMPALA,200000000,2,2,2")

    @parameterized.parameters("None", "NA", "null")
    def test_label_that_reads_as_missing_is_kept(self, label):
        _, _, row = self._rows(RUNS.replace("IMPALA", label))
        self.assertEqual(row, f"runs.csv,{label},3000,2,2,2")

    @parameterized.parameters("a,b\n1,2\n", RUNS.replace("3000", "x"), RUNS.replace("6.0", "x"))
    def test_other_file_is_rejected(self, text):
        self._path.write_text(text)
        self.assert_rejected(("--csv", self._path), "plot", f"--csv={self._path}")


if __name__ == "__main__":
    absltest.main()
