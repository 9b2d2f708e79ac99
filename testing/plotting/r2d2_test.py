"""Figure 5 of R2D2 from the files of evaluations."""

from absl.testing import absltest

from laser_tf import errors
from laser_tf.evaluation import evaluation_files
from laser_tf.plotting import r2d2
from testing import folders, messages
from testing.plotting import run_logs


class MemoryTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._workdir.mkdir()

    def _write(self, length):
        """Writes an evaluation of exploring actions, then one of greedy actions."""
        for selection, mean_return in (("epsilon-greedy", 1.0), ("greedy", 5.0)):
            result = {
                "env_frames": 100,
                "mean_return": mean_return,
                "greedy_match_fraction": 0.5,
                "max_logit_difference": 2.0,
                "protocol": {"action_selection": selection, "episodes_per_task": 3},
            }
            evaluation_files.add(self._workdir, result, length)

    def test_returns_are_those_of_exploring_actions(self):
        for length in (0, 10):
            self._write(length)
        r2d2.write_memory({"tmaze": {"stored state": [self._workdir]}}, self._folder, [10])
        rows = run_logs.read_csv(self._folder / "memory.csv")
        returns = {r["history_length"]: r["mean"] for r in rows if r["quantity"] == "return"}
        self.assertEqual(returns, {"all": "1", "10": "1"})

    def test_missing_evaluation_is_named(self):
        self._write(0)
        with messages.raises(errors.UserError, self._workdir, "--history_length=10"):
            r2d2.write_memory({"tmaze": {"stored state": [self._workdir]}}, self._folder, [10])


if __name__ == "__main__":
    absltest.main()
