"""Share of the best return that a run holds."""

from absl.testing import absltest, parameterized

from laser_tf.plotting import retention
from testing import folders
from testing.plotting import run_logs


class RetentionTest(folders.FolderTest):
    @parameterized.parameters(
        # Windows have 10 env frames. Returns of windows 1, 5 and 16 to 20, and the expectation.
        (0.0, 100.0, 80.0, 0.8),  # base 0
        (40.0, 100.0, 80.0, 0.8),
        (-500.0, -100.0, -180.0, 0.8),  # base -500, the first window
    )
    def test_last_quarter_is_compared_with_the_best_window(self, first, best, last, expected):
        # Single episodes above the best window do not count.
        episodes = [(3, first), (45, best - 50), (50, best + 50), (150, first)]
        episodes += [(151, last - 10), (175, last + 20), (200, last - 10)]
        run = run_logs.write_run(
            self._workdir,
            [(frames, 0, value) for frames, value in episodes],
            seconds={200: 1.0},
        )
        retention.write({"one": {"LASER": [run]}}, self._folder)
        (row,) = run_logs.read_csv(self._folder / "retention.csv")
        self.assertEqual((row["label"], row["seed"], row["env_frames"]), ("LASER", "1", "200"))
        self.assertEqual((float(row["best_window"]), float(row["last_quarter"])), (best, last))
        self.assertAlmostEqual(float(row["retained"]), expected)


if __name__ == "__main__":
    absltest.main()
