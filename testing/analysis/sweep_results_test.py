"""Sweeps read from their folders and measured by the paper's protocol, with numbers by hand."""

import json
import pathlib
import tempfile

import numpy as np
from absl.testing import absltest

from laser_tf.analysis import found_sweeps, sweep_diagnostics, sweep_results
from laser_tf.environments import suites
from laser_tf.monitoring import tensorboard
from laser_tf.training import run_config
from laser_tf.workdir import run_directory
from testing import sweep_folders

NAN = np.nan


class _FolderTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)

    def _summarise(self, bucket: int = 10):
        found, notes = found_sweeps.find(self._folder)
        results, missing = sweep_results.summarise(found, bucket)
        return results, notes + missing


class FindTest(_FolderTest):
    def test_finds_sweeps_at_any_depth_and_the_folder_itself(self):
        sweep_folders.write(self._folder / "a/b", {"agent_00": {"breakout": [(1, 2.0)]}}, replica=3)
        for folder in (self._folder, self._folder / "a/b"):
            (sweep,), notes = found_sweeps.find(folder)
            self.assertEmpty(notes)
            self.assertEqual((sweep.label, sweep.replica, sweep.suite), ("laser", 3, "tmaze"))
            self.assertEqual((sweep.tasks, sweep.env_frames), (("breakout",), 20))
            (agent,) = sweep.agents
            self.assertEqual(agent.hyperparameters["learner.learning_rate"], 1e-4)
            np.testing.assert_array_equal(agent.episodes["breakout"].returns, [2.0])

    def test_tasks_are_known_by_all_their_names(self):
        agents = {"agent_00": {"breakout": [(1, 2.0)]}}
        for name in ("breakout", "MinAtar/Breakout-v1"):
            path = self._folder / name.replace("/", "_")
            sweep_folders.write(path, agents, suite="minatar", task=name)
        found, _ = found_sweeps.find(self._folder)
        self.assertEqual([sweep.tasks for sweep in found], [("breakout",)] * 2)
        _, (note, *_) = self._summarise()
        self.assertRegex(note, "is left out: .* has its label 'laser', replica 1 and task breakout")
        path = self._folder / "of_each"
        sweep_folders.write(path, agents, suite="minatar", task="asterix")
        content = json.loads((path / "sweep.json").read_text())
        content["agents"]["agent_00"]["environment.task"] = "MinAtar/Breakout-v1"
        (path / "sweep.json").write_text(json.dumps(content))
        (sweep,), _ = found_sweeps.find(path)
        self.assertEqual(sweep.agents[0].own_tasks, ("breakout",))

    def test_a_sweep_whose_last_episodes_cannot_be_told_is_left_out(self):
        for name in "ab":
            episodes = {"agent_00": {"breakout": [(1, 2.0), (3, 5.0)]}}
            sweep_folders.write(self._folder / name, episodes, label=name)
        log = self._folder / "b/agent_00/episodes.csv"
        header, first, second = log.read_text().splitlines()
        log.write_text("\n".join([header, second, first, ""]))
        (sweep,), (note,) = found_sweeps.find(self._folder)
        self.assertEqual(sweep.label, "a")
        expected = (
            "b/sweep.json is left out: .*b/agent_00/episodes.csv has episodes that are not in"
        )
        self.assertRegex(note, expected)
        with self.assertRaisesRegex(
            run_directory.WorkdirError, "no sweep that can be read; .*sort its lines by them$"
        ):
            found_sweeps.find(self._folder / "b")

    def test_what_a_configuration_left_to_its_defaults_has_them(self):
        path = sweep_folders.write(self._folder / "a", {"agent_00": {}}) / run_directory.SWEEP_FILE
        for key in ("run.env_frames", "environment.suite", "environment.task"):
            sweep_folders.forget(path, key)
        (sweep,), notes = found_sweeps.find(self._folder)
        self.assertEmpty(notes)
        self.assertEqual((sweep.suite, sweep.tasks), (suites.DEFAULT, ("pong",)))
        self.assertEqual(sweep.env_frames, run_config.Config().env_frames)
        self.assertEqual(sweep.settings["run.env_frames"], sweep.env_frames)

    def test_a_folder_without_sweeps_is_refused(self):
        with self.assertRaisesRegex(run_directory.WorkdirError, "holds no sweep: there is no sw"):
            found_sweeps.find(self._folder)

    def test_what_cannot_be_read_is_told_and_refused_where_nothing_else_is_there(self):
        for name, text in (("a", "{"), ("b", '{"label": 1}'), ("c", "[]")):
            (self._folder / name).mkdir()
            (self._folder / name / "sweep.json").write_text(text)
        with self.assertRaisesRegex(
            run_directory.WorkdirError, "no sweep that can be read; .*a/sweep.json is"
        ):
            found_sweeps.find(self._folder)
        sweep_folders.write(self._folder / "d", {"agent_00": {}})
        found, notes = found_sweeps.find(self._folder)
        self.assertLen(found, 1)
        self.assertLen(notes, 3)
        self.assertRegex(notes[1], "b/sweep.json is left out: KeyError: 'config'")


class SummariseTest(_FolderTest):
    def test_buckets_then_median_then_best_agent_then_replicas(self):
        sweep_folders.write_comparison(self._folder)
        (results,), notes = self._summarise()
        self.assertEmpty(notes)
        self.assertFalse(results.protocol.is_normalised)
        self.assertEqual(results.protocol.tasks, ("x", "y", "z"))
        (condition,) = results.conditions
        curves = [replica.curve for replica in condition.replicas]
        np.testing.assert_array_equal(curves, [[4, 10], [6, 2]])
        agents = [agent.curve for agent in condition.replicas[0].agents]
        np.testing.assert_array_equal(agents, [[4, 10], [0, 4]])
        np.testing.assert_array_equal(condition.curve.mean, [5, 6])
        np.testing.assert_array_equal(condition.curve.worst, [4, 2])
        np.testing.assert_array_equal(condition.curve.best, [6, 10])
        np.testing.assert_array_equal(results.protocol.env_frames(2), [5, 15])

    def test_final_scores_are_of_the_last_100_episodes_of_each_task(self):
        returns = [(k, 1000.0) for k in range(50)] + [(50 + k, 2.0) for k in range(100)]
        tasks = {"x": returns, "y": [(0, 5.0), (1, 7.0)], "z": [(0, 0.0)]}
        sweep_folders.write(self._folder / "s", {"agent_00": tasks}, task="x,y,z", env_frames=150)
        (results,), _ = self._summarise()
        (agent,) = results.conditions[0].replicas[0].agents
        self.assertEqual((agent.score, agent.episodes), (2.0, 1))

    def test_scores_are_human_normalised_where_all_tasks_have_a_reference(self):
        halfway = {"agent_00": {"pong": [(0, (14.6 - 20.7) / 2)]}}
        sweep_folders.write(self._folder / "s", halfway, suite="atari", task="pong")
        (results,), notes = self._summarise()
        replica = results.conditions[0].replicas[0]
        self.assertTrue(results.protocol.is_normalised)
        np.testing.assert_allclose(replica.curve, [0.5])
        np.testing.assert_allclose(replica.scores, [0.5])
        other = {"agent_00": {"adventure": [(19, 3.0)]}}
        sweep_folders.write(self._folder / "t", other, suite="atari", task="adventure")
        (results,), notes = self._summarise()
        self.assertFalse(results.protocol.is_normalised)
        self.assertIn("atari: raw returns, since there is no reference score of adventure", notes)

    def test_what_is_reported_at_the_end_belongs_to_the_last_bucket(self):
        episodes = {"agent_00": {"breakout": [(19, 2.0), (20, 4.0), (24, 6.0)]}}
        sweep_folders.write(self._folder / "s", episodes)
        (results,), _ = self._summarise()
        np.testing.assert_array_equal(results.conditions[0].curve.mean, [NAN, 4.0])

    def test_agents_and_replicas_that_are_not_there_yet(self):
        one = {"agent_00": {"breakout": [(0, 1.0), (19, 3.0)]}, "agent_01": {}}
        two = {"agent_00": {"breakout": [(0, 5.0)]}, "agent_01": {"breakout": [(2, 7.0)]}}
        sweep_folders.write(self._folder / "one", one, replica=1)
        sweep_folders.write(self._folder / "two", two, replica=2)
        sweep_folders.write(self._folder / "three", {"agent_00": {}}, replica=3)
        (results,), notes = self._summarise()
        (condition,) = results.conditions
        np.testing.assert_array_equal(condition.curve.mean, [4.0, 3.0])
        np.testing.assert_array_equal(condition.curve.replicas, [2, 1])
        self.assertTrue(np.isnan(condition.replicas[0].agents[1].score))
        self.assertEqual(condition.replicas[0].scores, [2.0])
        text = "\n".join(notes)
        self.assertRegex(text, "'laser', replica 1: no episodes yet of agent_01 in .*one")
        self.assertRegex(text, "replica 2: the slowest agent is at 0 of 20 env frames")
        self.assertRegex(text, "replica 3: no episodes yet of breakout")

    def test_a_finished_sweep_whose_last_episodes_were_long_lacks_nothing(self):
        path = sweep_folders.write(self._folder / "s", {"agent_00": {"breakout": [(2, 1.0)]}})
        _, (note,) = self._summarise(bucket=1)
        self.assertRegex(note, "the slowest agent is at 2 of 20")
        (path / "finished").touch()
        _, notes = self._summarise(bucket=1)
        self.assertEmpty(notes)

    def test_a_task_that_a_replica_lacks_is_told_and_left_out_of_its_median(self):
        for replica, task, value in ((1, "x", 1.0), (1, "y", 5.0), (2, "x", 9.0)):
            episodes = {"agent_00": {task: [(19, value)]}}
            path = self._folder / f"{replica}{task}"
            sweep_folders.write(path, episodes, replica=replica, task=task)
        (results,), notes = self._summarise()
        self.assertEqual(notes, ["'laser', replica 2: no episodes yet of y"])
        np.testing.assert_array_equal(results.conditions[0].curve.mean, [NAN, 6.0])

    def test_the_same_sweep_twice_counts_once(self):
        for name in "ab":
            sweep_folders.write(self._folder / name, {"agent_00": {"breakout": [(19, 1.0)]}})
        (results,), notes = self._summarise()
        self.assertLen(results.conditions[0].replicas, 1)
        (note,) = notes
        self.assertRegex(note, "b is left out: .*a has its label 'laser', replica 1 and task break")

    def test_suites_are_measured_apart(self):
        sweep_folders.write(self._folder / "a", {"agent_00": {"breakout": [(19, 1.0)]}})
        of_atari = {"agent_00": {"pong": [(19, 1.0)]}}
        sweep_folders.write(self._folder / "b", of_atari, suite="atari", task="pong")
        results, _ = self._summarise()
        self.assertEqual([r.protocol.suite for r in results], ["atari", "tmaze"])
        self.assertEqual([r.protocol.is_normalised for r in results], [True, False])

    def test_agents_of_one_name_with_other_hyperparameters_are_told(self):
        for task in "xy":
            path = self._folder / task
            sweep_folders.write(path, {"agent_00": {task: [(19, 1.0)]}}, task=task)
        content = json.loads((path / "sweep.json").read_text())
        content["agents"]["agent_00"]["learner.learning_rate"] = 1.0
        (path / "sweep.json").write_text(json.dumps(content))
        _, notes = self._summarise()
        self.assertRegex(notes[0], "'laser', replica 1: agents differ between .*x and .*y")

    def test_sweeps_of_a_label_with_other_settings_are_told(self):
        for replica, frames in ((1, 20), (2, 20), (3, 30)):
            episodes = {"agent_00": {"breakout": [(19, 1.0), (29, 1.0)]}}
            path = self._folder / str(replica)
            sweep_folders.write(path, episodes, replica=replica, env_frames=frames)
            _, notes = self._summarise()
            self.assertLen(notes, replica == 3)
        self.assertRegex(notes[0], "'laser': run.env_frames is 20 in .*1, but 30 in .*3, which are")

    def test_what_a_resumed_run_may_change_is_no_other_setting(self):
        for replica, learners in ((1, 1), (2, 4)):
            path = self._folder / str(replica)
            episodes = {"agent_00": {"breakout": [(19, 1.0)]}}
            sweep_folders.write(path, episodes, replica=replica)
            content = json.loads((path / "sweep.json").read_text())
            content["config"]["learner"] = {"replicas": learners}
            (path / "sweep.json").write_text(json.dumps(content))
        _, notes = self._summarise()
        self.assertEmpty(notes)

    def test_agents_of_different_tasks_are_measured_on_their_own(self):
        agents = {"agent_00": {"x": [(19, 1.0)]}, "agent_01": {"y": [(19, 5.0)]}}
        path = sweep_folders.write(self._folder / "s", agents, task="x")
        content = json.loads((path / "sweep.json").read_text())
        for name, task in (("agent_00", "x"), ("agent_01", "y")):
            content["agents"][name]["environment.task"] = task
        (path / "sweep.json").write_text(json.dumps(content))
        (results,), notes = self._summarise()
        self.assertEqual(results.conditions[0].replicas[0].scores, [1.0, 5.0])
        self.assertRegex("".join(notes), "replica 1: agents play different tasks, so that their")


class DiagnosticsTest(_FolderTest):
    def test_means_over_agents_and_replicas_in_the_same_buckets(self):
        for replica in (1, 2):
            path = self._folder / str(replica)
            sweep_folders.write(path, {"agent_00": {"breakout": [(29, 1.0)]}}, replica=replica,
                                env_frames=30)  # fmt: skip
            with tensorboard.MetricsWriter(path / "agent_00/tensorboard") as writer:
                writer.write(10, {"policy/kl_own": 1.0 * replica})
                writer.write(30, {"policy/kl_own": 3.0 * replica})
                writer.write(31, {"policy/kl_own": np.inf, "policy/kl_foreign": np.inf})
        (results,), _ = self._summarise()
        (condition,) = results.conditions
        of_runs = {run.folder: sweep_diagnostics.read(run.folder) for run in condition.runs}
        curves = sweep_diagnostics.mean_curves(results.protocol, condition, of_runs)
        self.assertEqual(list(curves), ["policy/kl_own"])  # the other has no finite value
        np.testing.assert_allclose(curves["policy/kl_own"], [1.5, 3.0, 4.5])


if __name__ == "__main__":
    absltest.main()
