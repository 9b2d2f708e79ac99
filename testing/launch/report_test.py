"""The report's files: numbers worked out by hand, a page that needs nothing else, odd labels."""

import csv
import pathlib
import re
import tempfile

from absl.testing import absltest

from laser_tf.analysis import report_files
from laser_tf.monitoring import tensorboard
from testing import sweep_folders

LINEAGE = """env_frames,agent,parent,fitness,learner.learning_rate
0,agent_00,,,0.001
0,agent_01,,,0.002
10,agent_01,agent_00,3.5,0.0012
"""


class ReportTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name) / "runs"
        self._output = pathlib.Path(folder.name) / "made/report"

    def _write(self, bucket: int = 10) -> str:
        return report_files.write(self._folder, self._output, bucket).read_text()

    def _rows(self, name: str) -> list[list[str]]:
        with (self._output / name).open(newline="") as file:
            return list(csv.reader(file))

    def test_the_numbers(self):
        sweep_folders.write_comparison(self._folder)
        for task, entropy, advantage in (("x", 1.0, 2.0), ("y", 0.5, 5.0)):
            run = self._folder / "replica_1" / task / "agent_01"
            with tensorboard.MetricsWriter(run / "tensorboard") as writer:
                writer.write(10, {"policy/entropy": 3.0, "vtrace/advantage_foreign": -1.0})
                values = {"policy/entropy": entropy, "vtrace/advantage_foreign": advantage}
                writer.write(20, values)
        page = self._write()
        self.assertEqual(
            self._rows("curves.csv"),
            [
                ["label", "env_frames", "mean", "worst", "best", "replicas"],
                ["laser", "5", "5", "4", "6", "2"],
                ["laser", "15", "6", "2", "10", "2"],
            ],
        )
        # Means of three episodes a task, then medians: x 14/3, y 8/3, z 100; x 4/3, y 22/3, z -50;
        # x 4, y 16/3, z 8/3; x 4/3, y 4/3, z 22/3.
        header, *rows = self._rows("scores.csv")
        names = ["learner.learning_rate", "agent.entropy_cost"]
        measures = ["policy_entropy", "advantage_own", "advantage_foreign"]
        measures += ["accepted_foreign_fraction", "kl_foreign"]
        first = ["label", "replica", "agent", "score", "episodes"]
        self.assertEqual(header, [*first, *names, *measures])
        self.assertEqual(
            [row[1:] for row in rows],
            [
                ["1", "agent_00", "4.66667", "3", "0.0001", "0.01", *[""] * 5],
                ["2", "agent_00", "4", "3", "0.0001", "0.01", *[""] * 5],
                # Of its runs the last entropies 1 and 0.5, the mean advantages 0.5 and 2.
                ["1", "agent_01", "1.33333", "3", "0.0002", "0.01", "0.75", "", "1.25", "", ""],
                ["2", "agent_01", "1.33333", "3", "0.0002", "0.01", *[""] * 5],
            ],
        )
        # The best agents 4.67 and 4, the medians of the sweeps 3 and 2.67: mean and range.
        header, row = self._rows("conditions.csv")
        columns = ["best_agent", "median_agent", "at_or_below_random"]
        self.assertEqual(header[:2], ["label", "replicas"])
        self.assertEqual(header[2:], [c + end for c in columns for end in ("", "_low", "_high")])
        numbers = ["4.33333", "4", "4.66667", "2.83333", "2.66667", "3"]
        self.assertEqual(row, ["laser", "2", *numbers, "", "", ""])
        self.assertNotIn("random play", page)  # there is no reference
        self.assertIn("4.33 (4.00 to 4.67)", page)
        self.assertIn("2.83 (2.67 to 3.00)", page)
        self.assertNotIn("What is missing", page)

    def test_the_page_holds_its_pictures_and_fetches_nothing(self):
        sweep_folders.write_comparison(self._folder)
        with tensorboard.MetricsWriter(self._folder / "replica_1/x/agent_00/tensorboard") as writer:
            writer.write(10, {"policy/kl_own": 1.0, "replay/age_updates": 2.0})
        lineage = self._folder / "replica_1/x/population/lineage.csv"
        lineage.parent.mkdir()
        lineage.write_text(LINEAGE)
        page = self._write()
        sources = re.findall(r'src="([^"]{0,30})', page)
        self.assertLen(sources, 5)  # curves, diagnostics, agents of two replicas, lineage
        for source in sources:
            self.assertStartsWith(source, "data:image/png;base64,")
        self.assertLen(list(self._output.glob("*.png")), 5)
        for what in ("http", "<script", "<link", "url(", "@import"):
            self.assertNotIn(what, page)
        self.assertIn('name="viewport"', page)

    def test_labels_are_ranked_over_their_tasks(self):
        # Returns 10 and 4 on x, 6 and 8 on y, equal on z; normalised where there is a reference.
        for label, values in (("laser", (10.0, 6.0, 1.0)), ("impala", (4.0, 8.0, 1.0))):
            for task, value in zip("xyz", values, strict=True):
                for replica, change in ((1, 1.0), (2, -1.0)):
                    path = self._folder / label / str(replica) / task
                    # The other agent is best on x and y and far worse on z: its median is lower.
                    other = value + 50 if task == "x" else -9.0
                    agents = {
                        "agent_00": {task: [(19, value + change)]},
                        "agent_01": {task: [(19, other)]},
                    }
                    sweep_folders.write(path, agents, label=label, replica=replica, task=task)
        page = self._write()
        self.assertEqual(
            self._rows("standings.csv"),
            [
                ["label", "median_normalised", "mean_normalised", "mean_rank", "elo"],
                # x: 2 and 1, y: 1 and 2, z: 2 and 2.
                ["impala", "", "", "1.66667", "0"],
                ["laser", "", "", "1.66667", "0"],
            ],
        )
        self.assertIn("<h2>Standings</h2>", page)
        self.assertIn("1.67", page)
        self.assertNotIn(">median<", page)  # of raw returns on different tasks

    def test_agents_that_play_no_better_than_at_random_are_counted(self):
        # Pong: random -20.7, human 14.6. Two of three agents, then one.
        for replica, returns in enumerate(((-20.7, 14.6, -21.0), (-20.6, 14.6, -21.0)), 1):
            agents = {f"agent_{k:02d}": {"pong": [(19, r)]} for k, r in enumerate(returns)}
            path = self._folder / str(replica)
            sweep_folders.write(path, agents, replica=replica, suite="atari", task="pong")
        page = self._write()
        _, row = self._rows("conditions.csv")
        self.assertEqual(row[-3:], ["1.5", "1", "2"])
        self.assertIn("agents at or below random play", page)
        self.assertIn("1.5 (1 to 2)", page)

    def test_human_normalised_scores_stand_beside_ranks_and_elo(self):
        # Pong: random -20.7, human 14.6; boxing: random 0.1, human 12.1.
        for label, pong, boxing in (("laser", 14.6, 24.1), ("impala", -20.7, 0.1)):
            tasks = {"pong": [(19, pong)], "boxing": [(19, boxing)]}
            path = self._folder / label
            sweep_folders.write(
                path, {"agent_00": tasks}, label=label, suite="atari", task="pong,boxing"
            )
        page = self._write()
        self.assertEqual(
            self._rows("standings.csv")[1:],
            [["laser", "1.5", "1.5", "1", ""], ["impala", "0", "0", "2", ""]],
        )
        section = page.split("<h2>Standings</h2>")[1].split("</section>")[0]
        for cell in ("median", "150.0%", "1.00", "–", "mean rank", "Elo"):
            self.assertIn(f">{cell}</t", section)

    def test_what_lacks_a_task_or_a_rival_is_not_ranked(self):
        both = {"agent_00": {"x": [(19, 1.0)], "y": [(19, 2.0)]}}
        sweep_folders.write(self._folder / "a", both, label="laser", task="x,y")
        self.assertNotIn("Standings", self._write())
        one = {"agent_00": {"x": [(19, 1.0)]}}
        sweep_folders.write(self._folder / "b", one, label="impala", task="x")
        self.assertNotIn("Standings", self._write())
        self.assertLen(self._rows("standings.csv"), 1)

    def test_labels_of_any_characters(self):
        labels = ("<b>&$x", "a $ and $y_{", "_under\nline", "Ω")
        for k, label in enumerate(labels):
            agents = {"agent_00": {"breakout": [(0, 1.0), (15, 2.0)]}}
            sweep_folders.write(self._folder / str(k), agents, label=label)
        page = self._write()
        self.assertNotIn("<b>", page)
        self.assertIn("&lt;b&gt;&amp;$x", page)
        self.assertEqual({row[0] for row in self._rows("curves.csv")[1:]}, set(labels))
        self.assertLen(list(self._output.glob("*.png")), 1 + len(labels))

    def test_a_sweep_that_has_only_begun_is_reported_with_what_is_missing(self):
        sweep_folders.write(self._folder / "new", {"agent_00": {}})
        with self.assertLogs() as logs:
            page = self._write(bucket=0)
        self.assertIn("What is missing", page)
        self.assertRegex(logs.output[0], "no episodes yet of agent_00")
        self.assertIn("no episodes yet of agent_00", page)
        self.assertEmpty(list(self._output.glob("*.png")))
        self.assertLen(self._rows("curves.csv"), 1)
        self.assertEqual(self._rows("scores.csv")[1][3], "")
        self.assertEqual(self._rows("conditions.csv")[1], ["laser", "0", *[""] * 9])

    def test_two_suites_with_one_label_are_told_apart(self):
        sweep_folders.write(self._folder / "a", {"agent_00": {"breakout": [(19, 1.0)]}})
        of_atari = {"agent_00": {"pong": [(19, 14.6)]}}
        sweep_folders.write(self._folder / "b", of_atari, suite="atari", task="pong")
        page = self._write()
        labels = [row[0] for row in self._rows("curves.csv")[1:]]
        self.assertEqual(labels, ["atari: laser", "tmaze: laser"])
        self.assertIn("100.0%", page)


if __name__ == "__main__":
    absltest.main()
