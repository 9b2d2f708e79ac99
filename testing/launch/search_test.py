"""A search as a user runs it, and the processes of its trials."""

import csv
import json
import signal
from unittest import mock

from absl.testing import absltest

from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import evaluation_log
from laser_tf.sweeps import search as searches
from laser_tf.sweeps import sweep_config
from launch import command_line, search, subcommand
from testing import commands, folders, messages

SPACE = sweep_config.Config(choices={"agent": {"discount": (0.9,)}}, samples=5)


class RandomSearchTest(commands.CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.search = folders.of_class(cls) / "search"
        cls.flags = (
            "--config=configs/laser.py:catch", "--search=random", "--trials=2",
            "--parallel_trials=2", "--search_space=learner.learning_rate=log_uniform(1e-4, 1e-2)",
            "--config.run.env_frames=500", "--config.run.evaluation_episodes=2",
            f"--workdir={cls.search}",
        )  # fmt: skip
        cls.code, cls.output, cls.errors = commands.run("sweep", *cls.flags)

    def test_best_trial_is_evaluated_and_its_command_printed(self):
        self.assertEqual(self.code, 0, self.errors)
        with (self.search / "trials.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["state"] for row in rows], ["complete"] * 2)
        self.assertNotEqual(*[row["learner.learning_rate"] for row in rows])
        best = json.loads((self.search / search.BEST_FILE).read_text())
        row = max(rows, key=lambda row: float(row["mean_return"]))
        self.assertEqual(best["trial"], f"trial_{int(row['trial']):03d}")
        config = json.loads((self.search / best["trial"] / "config.json").read_text())["config"]
        self.assertEqual(str(config["learner"]["learning_rate"]), row["learner.learning_rate"])
        self.assertEqual(best["episodes"], 200)
        self.assertIn(f"--config.learner.learning_rate={row['learner.learning_rate']}", self.output)

    def test_same_command_prints_the_same_and_runs_nothing(self):
        before = sorted(self.search.rglob("*"))
        code, output, _ = commands.run("sweep", *self.flags)
        self.assertEqual((code, output), (0, self.output))
        self.assertEqual(sorted(self.search.rglob("*")), before)

    def test_smaller_number_of_trials_keeps_all_trials(self):
        before = (self.search / "trials.csv").read_bytes()
        code, output, errors = commands.run("sweep", *self.flags, "--trials=1")
        self.assertEqual((code, output), (0, self.output), errors)
        self.assertEqual((self.search / "trials.csv").read_bytes(), before)

    def test_table_that_cannot_be_written_is_named(self):
        table, kept = self.search / "trials.csv", self.search / "kept.csv"
        table.rename(kept)
        self.addCleanup(kept.rename, table)
        table.mkdir()
        self.addCleanup(table.rmdir)
        code, _, errors = commands.run("sweep", *self.flags)
        self.assertEqual(code, 1, errors)
        _, error = errors.splitlines()  # After the log line of the resumption.
        messages.assert_names(error, "error", table)

    def test_other_settings_are_rejected(self):
        flags = "--config.run.env_frames=600", "--config.learner.learning_rate_schedule=constant"
        self.assert_rejected(("run.env_frames", 600, "--workdir"), "sweep", *self.flags, *flags)


class TrialsTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self.process = mock.Mock(spec=subcommand.Process)
        self.enter_context(mock.patch.object(subcommand, "start_here", return_value=self.process))
        self.search = searches.RandomSearch(SPACE)
        self.trials = search.Trials(self.search, self._folder, 100, 10, "laser:catch", {})
        self.commands = self.trials.commands()

    def _start(self, *exit_codes):
        self.process.poll.side_effect = exit_codes
        return self.trials.start(next(self.commands))

    def _states(self):
        return [trial.state for trial in self.search.trials()]

    def test_pruned_trial_is_ended_once_and_the_search_continues(self):
        process = self._start(None, None, None, -signal.SIGTERM)
        self.assertIsNone(process.poll())  # no evaluation yet
        (self._folder / "trial_000").mkdir()
        log = evaluation_log.EvaluationLog(self._folder / "trial_000")
        for frames, task, mean in ((10, "a", 1.0), (10, "b", 3.0), (21, "a", 4.0)):
            log.add(evaluation_log.Row(frames, 5, task, 2, mean, 0.5, mean, mean, mean, None, 1.0))
        log.flush()
        with mock.patch.object(self.search, "should_prune", return_value=True) as should_prune:
            self.assertIsNone(process.poll())
            self.assertIsNone(process.poll())
        should_prune.assert_called_once_with(0, {1: 2.0, 2: 4.0})
        self.process.send_signal.assert_called_once_with(signal.SIGTERM)
        self.assertEqual(process.poll(), 0)
        self.assertEqual(self._states(), [searches.PRUNED])

    def test_failed_trials_in_a_row_end_the_search(self):
        codes = [self._start(code).poll() for code in (1, 1)]
        self.assertEqual(codes, [0, 0])
        complete = self._start(0)
        self._write_result("trial_002")
        self.assertEqual(complete.poll(), 0)
        self.assertEqual([self._start(1).poll() for _ in range(2)], [0, 0])
        self.assertEqual(self._states().count(searches.FAILED), 4)
        again = search.Trials(self.search, self._folder, 100, 10, "laser:catch", {})
        self.trials, self.commands = again, again.commands()
        self.assertEqual([self._start(7).poll() for _ in range(3)], [0, 0, 7])

    def _write_result(self, name, mean_return=1.5):
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        protocol = {"action_selection": "sample", "episodes_per_task": 2}
        result = {"env_frames": 100, "mean_return": mean_return, "protocol": protocol}
        evaluation_files.add(folder, result)

    def test_trial_that_has_a_result_is_not_run_again(self):
        self._write_result("trial_000")
        self._write_result("trial_000", mean_return=9.0)  # A later evaluation of the best trial.
        self.assertIn("trial_001", next(self.commands).title)
        best = searches.best(self.search.trials())
        self.assertEqual((best.number, best.mean_return), (0, 1.5))

    def test_damaged_file_of_the_best_trial_is_named(self):
        self._write_result("trial_000")
        next(self.commands)
        path = self._folder / search.BEST_FILE
        for text in ("", "[]", "{}"):
            path.write_text(text)
            with messages.raises(command_line.UsageError, path):
                self.trials.report_best()
            self.assertEqual(path.read_text(), text)

    def test_interrupted_trial_has_no_end(self):
        process = self._start(-signal.SIGINT)
        process.send_signal(signal.SIGINT)
        self.process.send_signal.assert_called_once_with(signal.SIGINT)
        self.assertEqual(process.poll(), -signal.SIGINT)
        self.assertEqual(self._states(), [searches.RUNNING])


if __name__ == "__main__":
    absltest.main()
