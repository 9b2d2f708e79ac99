"""Sweeps measured by the paper's protocol and reported, with numbers by hand."""

import pathlib
import re
import tempfile

import numpy as np
from absl.testing import absltest

from laser_tf.environments import suites
from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import tensorboard
from laser_tf.plotting import sweep_report, sweep_results, sweep_tables
from laser_tf.training import run_config
from laser_tf.workdir import run_directory
from testing import messages, sweep_folders
from testing.plotting import run_logs

LINEAGE = """env_frames,member,parent,fitness,learner.learning_rate
0,member_00,,,0.001
0,member_01,,,0.002
10,member_01,member_00,3.5,0.0012
"""


class _FolderTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._folder, self._output = folder / "runs", folder / "made/report"

    def _summarise(self, bucket=10):
        found, notes = sweep_tables.find(self._folder)
        results, missing = sweep_results.summarise(found, bucket)
        return results, notes + missing


class FindTest(_FolderTest):
    def test_sweeps_are_found_at_any_depth(self):
        sweep_folders.write(self._folder / "a/b", {"member_00": {"breakout": [(1, 2.0)]}}, seed=3)
        for folder in (self._folder, self._folder / "a/b"):
            (sweep,), notes = sweep_tables.find(folder)
            self.assertEmpty(notes)
            self.assertEqual((sweep.label, sweep.seed, sweep.suite), ("laser", 3, "tmaze"))
            self.assertEqual((sweep.tasks, sweep.env_frames), (("breakout",), 20))
            self.assertEqual(sweep.members["member_00"]["learner.learning_rate"], 1e-4)
            self.assertEqual(sweep.progress(), {"member_00": 1})

    def test_tasks_have_one_name(self):
        members = {"member_00": {"breakout": [(1, 2.0)]}}
        for name in ("breakout", "MinAtar/Breakout-v1"):
            path = self._folder / name.replace("/", "_")
            sweep_folders.write(path, members, suite="minatar", task=name)
        found, _ = sweep_tables.find(self._folder)
        self.assertEqual([sweep.tasks for sweep in found], [("breakout",)] * 2)
        _, (note, *_) = self._summarise()
        messages.assert_names(note, "'laser'", 1, "breakout")

    def test_sweep_with_episodes_out_of_order_is_left_out(self):
        for name in "ab":
            episodes = {"member_00": {"breakout": [(1, 2.0), (3, 5.0)]}}
            sweep_folders.write(self._folder / name, episodes, label=name)
        log = self._folder / "b/member_00/episodes.csv"
        header, first, second = log.read_text().splitlines()
        log.write_text("\n".join([header, second, first, ""]))
        (sweep,), (note,) = sweep_tables.find(self._folder)
        self.assertEqual(sweep.label, "a")
        messages.assert_names(note, log)

    def test_missing_keys_have_their_defaults(self):
        path = sweep_folders.write(self._folder / "a", {"member_00": {}}) / run_directory.SWEEP_FILE
        for key in ("run.env_frames", "environment.suite", "environment.task"):
            sweep_folders.forget(path, key)
        (sweep,), notes = sweep_tables.find(self._folder)
        self.assertEmpty(notes)
        self.assertEqual((sweep.suite, sweep.tasks), (suites.DEFAULT, ("pong",)))
        self.assertEqual(sweep.env_frames, run_config.Config().env_frames)

    def test_directory_without_readable_sweep_is_rejected(self):
        self._folder.mkdir()
        with messages.raises(run_directory.WorkdirError, self._folder):
            sweep_tables.find(self._folder)
        for name, text in (("a", "{"), ("b", '{"label": 1}'), ("c", "[]")):
            (self._folder / name).mkdir()
            (self._folder / name / "sweep.json").write_text(text)
        with messages.raises(run_directory.WorkdirError, self._folder / "a/sweep.json"):
            sweep_tables.find(self._folder)
        sweep_folders.write(self._folder / "d", {"member_00": {}})
        found, notes = sweep_tables.find(self._folder)
        self.assertLen(found, 1)
        self.assertLen(notes, 3)

    def test_sweep_of_no_members_or_endless_budget_is_left_out(self):
        sweep_folders.write(self._folder / "a", {"member_00": {}})
        sweep_folders.write(self._folder / "b", {})
        sweep_folders.write(self._folder / "c", {"member_00": {}}, env_frames=float("inf"))
        found, notes = sweep_tables.find(self._folder)
        self.assertEqual([sweep.workdir.name for sweep in found], ["a"])
        for note, name, key in zip(notes, "bc", ("members", "OverflowError"), strict=True):
            messages.assert_names(note, self._folder / name, key)


class SummariseTest(_FolderTest):
    def test_buckets_then_median_then_best_member(self):
        sweep_folders.write_comparison(self._folder)
        (results,), notes = self._summarise()
        self.assertEmpty(notes)
        self.assertFalse(results.is_normalised)
        self.assertEqual(results.tasks, ("x", "y", "z"))
        best = results.best_curves()
        self.assertEqual(list(best["seed"]), [1, 1, 2, 2])
        self.assertEqual(list(best["env_frames"]), [5, 15, 5, 15])
        self.assertEqual(list(best["score"]), [4, 10, 6, 2])
        members = results.curve.query("seed == 1")
        self.assertEqual(list(members["score"]), [4, 10, 0, 4])

    def test_final_scores_are_of_the_last_100_episodes(self):
        returns = [(k, 1000.0) for k in range(50)] + [(50 + k, 2.0) for k in range(100)]
        tasks = {"x": returns, "y": [(0, 5.0), (1, 7.0)], "z": [(0, 0.0)]}
        sweep_folders.write(self._folder / "s", {"member_00": tasks}, task="x,y,z", env_frames=150)
        (results,), _ = self._summarise()
        (row,) = results.members().to_dict("records")
        self.assertEqual((row["score"], row["episodes"]), (2.0, 1))

    def test_label_without_episodes_of_a_task_has_no_score(self):
        complete = {"x": [(0, 1.0)], "y": [(0, 3.0)]}
        for label, tasks in (("a", complete), ("b", {"x": [(0, 9.0)]})):
            members = {"member_00": tasks}
            sweep_folders.write(self._folder / label, members, label=label, task="x,y")
        (results,), _ = self._summarise()
        rows = results.members()
        self.assertEqual(list(rows["label"]), ["a", "b"])
        np.testing.assert_array_equal(rows["score"], [2.0, np.nan])
        self.assertEqual(set(results.best_curves()["label"]), {"a"})

    def test_evaluations_rank_members_once_all_have_one(self):
        members = {
            "member_00": {"pong": [(19, 20.0)]},
            "member_01": {"pong": [(19, 10.0)]},
            "member_02": {},
        }
        path = sweep_folders.write(self._folder / "s", members, suite="atari", task="pong")
        for name, returns in (("member_00", [-20.7, -20.7]), ("member_01", [14.6, 14.6])):
            (results,), notes = self._summarise()
            self.assertFalse(results.is_evaluated)
            self.assertEqual(list(results.members()["member"])[0], "member_00")
            protocol = {"action_selection": "sampled", "episodes_per_task": 2}
            summary = {
                "env_frames": 20,
                "protocol": protocol,
                "tasks": {"pong": {"returns": returns}},
            }
            evaluation_files.write(summary, path / name / "evaluation.json")
        messages.assert_names("\n".join(notes), "atari", 1, 2)
        (results,), _ = self._summarise()
        self.assertTrue(results.is_evaluated)
        rows = results.members()
        self.assertEqual(list(rows["member"]), ["member_01", "member_00", "member_02"])
        np.testing.assert_allclose(rows["score"], [1.0, 0.0, np.nan], atol=1e-9)
        self.assertEqual(list(rows["episodes"]), [2, 2, 0])

    def test_scores_are_normalised_if_all_tasks_have_a_reference(self):
        halfway = {"member_00": {"pong": [(0, (14.6 - 20.7) / 2)]}}
        sweep_folders.write(self._folder / "s", halfway, suite="atari", task="pong")
        (results,), _ = self._summarise()
        self.assertTrue(results.is_normalised)
        np.testing.assert_allclose(results.best_curves()["score"], [0.5])
        np.testing.assert_allclose(results.members()["score"], [0.5])
        other = {"member_00": {"adventure": [(19, 3.0)]}}
        sweep_folders.write(self._folder / "t", other, suite="atari", task="adventure")
        (results,), notes = self._summarise()
        self.assertFalse(results.is_normalised)
        messages.assert_names("\n".join(notes), "atari", "adventure")

    def test_last_episodes_belong_to_the_last_bucket(self):
        episodes = {"member_00": {"breakout": [(19, 2.0), (20, 4.0), (24, 6.0)]}}
        sweep_folders.write(self._folder / "s", episodes)
        (results,), _ = self._summarise()
        self.assertEqual(list(results.best_curves()["score"]), [4.0])

    def test_missing_members_and_tasks_are_noted(self):
        one = {"member_00": {"breakout": [(0, 1.0), (19, 3.0)]}, "member_01": {}}
        two = {"member_00": {"breakout": [(0, 5.0)]}, "member_01": {"breakout": [(2, 7.0)]}}
        sweep_folders.write(self._folder / "one", one, seed=1)
        sweep_folders.write(self._folder / "two", two, seed=2)
        sweep_folders.write(self._folder / "three", {"member_00": {}}, seed=3)
        (results,), notes = self._summarise()
        members = results.members().set_index(["seed", "member"])["score"]
        self.assertTrue(np.isnan(members[1, "member_01"]))
        self.assertEqual(members[1, "member_00"], 2.0)
        text = "\n".join(notes)
        messages.assert_names(text, "member_01", "breakout", 20)

    def test_finished_sweep_lacks_nothing(self):
        path = sweep_folders.write(self._folder / "s", {"member_00": {"breakout": [(2, 1.0)]}})
        self.assertLen(self._summarise(bucket=1)[1], 1)
        (path / "finished").touch()
        self.assertEmpty(self._summarise(bucket=1)[1])

    def test_same_sweep_twice_counts_once(self):
        for name in "ab":
            sweep_folders.write(self._folder / name, {"member_00": {"breakout": [(19, 1.0)]}})
        (results,), notes = self._summarise()
        self.assertLen(results.sweeps, 1)
        self.assertLen(notes, 1)

    def test_suites_are_measured_separately(self):
        sweep_folders.write(self._folder / "a", {"member_00": {"breakout": [(19, 1.0)]}})
        atari = {"member_00": {"pong": [(19, 1.0)]}}
        sweep_folders.write(self._folder / "b", atari, suite="atari", task="pong")
        results, _ = self._summarise()
        self.assertEqual([r.suite for r in results], ["atari", "tmaze"])
        self.assertEqual([r.is_normalised for r in results], [True, False])

    def test_different_settings_of_a_label_are_noted(self):
        for seed, frames in ((1, 20), (2, 20), (3, 30)):
            episodes = {"member_00": {"breakout": [(19, 1.0), (29, 1.0)]}}
            sweep_folders.write(self._folder / str(seed), episodes, seed=seed, env_frames=frames)
            self.assertLen(self._summarise()[1], seed == 3)
        messages.assert_names(self._summarise()[1][0], "run.env_frames", 20, 30)


class ReportTest(_FolderTest):
    def _write(self, bucket=10):
        return sweep_report.write(self._folder, self._output, bucket).read_text()

    def _rows(self, name):
        return run_logs.read_csv(self._output / name)

    def test_csv_files_and_page_hold_the_results(self):
        sweep_folders.write_comparison(self._folder)
        for task, entropy, advantage in (("x", 1.0, 2.0), ("y", 0.5, 5.0)):
            run = self._folder / "seed_1" / task / "member_01"
            writer = tensorboard.MetricsWriter(run / "tensorboard")
            writer.write(10, {"policy/entropy": 3.0, "vtrace/advantage_foreign": -1.0})
            writer.write(20, {"policy/entropy": entropy, "vtrace/advantage_foreign": advantage})
        page = self._write()
        self.assertNotIn("What is missing", page)
        columns = ("label", "env_frames", "mean", "min", "max", "seeds")
        self.assertEqual(
            [tuple(row[column] for column in columns) for row in self._rows("curves.csv")],
            [("laser", "5", "5", "4", "6", "2"), ("laser", "15", "6", "2", "10", "2")],
        )
        # Means of three episodes a task, then medians: x 14/3, y 8/3, z 100; x 4/3, y 22/3, z -50;
        # x 4, y 16/3, z 8/3; x 4/3, y 4/3, z 22/3.
        rows = self._rows("scores.csv")
        self.assertEqual(
            [(row["seed"], row["member"], row["score"], row["episodes"]) for row in rows],
            [
                ("1", "member_00", "4.66667", "3"),
                ("2", "member_00", "4", "3"),
                ("1", "member_01", "1.33333", "3"),
                ("2", "member_01", "1.33333", "3"),
            ],
        )
        self.assertEqual(
            [row["learner.learning_rate"] for row in rows], ["0.0001"] * 2 + ["0.0002"] * 2
        )
        # Of its runs the last entropies 1 and 0.5, the mean advantages 0.5 and 2.
        self.assertEqual(
            (rows[2]["policy_entropy"], rows[2]["advantage_foreign"]), ("0.75", "1.25")
        )
        conditions = {row["measure"]: row for row in self._rows("conditions.csv")}
        best, median = conditions["best_member"], conditions["median_member"]
        self.assertEqual((best["mean"], best["min"], best["max"]), ("4.33333", "4", "4.66667"))
        self.assertEqual(
            (median["mean"], median["min"], median["max"]), ("2.83333", "2.66667", "3")
        )
        self.assertLen(conditions, 2)  # there is no reference: nothing about random play

    def test_page_contains_its_figures_and_fetches_nothing(self):
        sweep_folders.write_comparison(self._folder)
        writer = tensorboard.MetricsWriter(self._folder / "seed_1/x/member_00/tensorboard")
        writer.write(10, {"policy/kl_own": 1.0, "replay/age_updates": 2.0})
        lineage = self._folder / "seed_1/x/population/lineage.csv"
        lineage.parent.mkdir()
        lineage.write_text(LINEAGE)
        page = self._write()
        sources = re.findall(r'src="([^"]{0,30})', page)
        for source in sources:
            self.assertStartsWith(source, "data:image/png;base64,")
        self.assertLen(list(self._output.glob("*.png")), len(sources))
        self.assertTrue(list(self._output.glob("lineage_*.png")))
        self.assertTrue(list(self._output.glob("replay_*.png")))
        for what in ("http", "<script", "<link", "url(", "@import"):
            self.assertNotIn(what, page)

    def test_labels_are_ranked_over_their_tasks(self):
        # Returns 10 and 4 on x, 6 and 8 on y, equal on z.
        for label, values in (("laser", (10.0, 6.0, 1.0)), ("impala", (4.0, 8.0, 1.0))):
            for task, value in zip("xyz", values, strict=True):
                for seed, change in ((1, 1.0), (2, -1.0)):
                    path = self._folder / label / str(seed) / task
                    # The other member is best on x and far worse elsewhere: its median is lower.
                    other = value + 50 if task == "x" else -9.0
                    members = {
                        "member_00": {task: [(19, value + change)]},
                        "member_01": {task: [(19, other)]},
                    }
                    sweep_folders.write(path, members, label=label, seed=seed, task=task)
        self._write()
        rows = self._rows("standings.csv")
        self.assertEqual({row["label"] for row in rows}, {"laser", "impala"})
        self.assertEqual({(row["mean_rank"], row["elo"]) for row in rows}, {("1.66667", "0")})

    def test_odd_labels_are_escaped(self):
        label = "<b>_$x & y</b>"
        members = {"member_00": {"breakout": [(19, 1.0)]}}
        sweep_folders.write(self._folder / "s", members, label=label)
        page = self._write()
        self.assertNotIn("<b>_", page)
        self.assertEqual(self._rows("curves.csv")[0]["label"], label)


if __name__ == "__main__":
    absltest.main()
