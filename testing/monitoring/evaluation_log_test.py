"""Tests of the log of periodic evaluations and their metrics."""

from absl.testing import absltest

from laser_tf.evaluation import episode_runner
from laser_tf.monitoring import evaluation_log
from testing import fakes, folders, messages

HEADER = (
    "env_frames,learner_updates,task,episodes,mean_return,standard_deviation,median_return,"
    "min_return,max_return,normalised_score,seconds\n"
)


def _summary(env_frames: int, task: str, *returns: list[float], suite: str = "minatar"):
    config = fakes.catch_config(environment={"suite": suite, "task": task})
    episodes = [
        episode_runner.Episode(0, index, 0, value, 9)
        for index, of_task in enumerate(returns)
        for value in of_task
    ]
    counts = {"env_frames": env_frames, "learner_updates": env_frames // 4, "seconds": 1.25}
    return episode_runner.summarise_returns(config.environment, episodes) | counts


class EvaluationLogTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._path = self._folder / "evaluations.csv"

    def test_evaluation_is_one_row_per_task(self):
        log = evaluation_log.EvaluationLog(self._folder)
        self.assertFalse(log.exists())
        log.resume(None)
        self.assertTrue(log.exists())
        log.add_summary(_summary(400, "catch", [1.0, -1.0, 1.0, 1.0], suite="catch"))
        log.add_summary(_summary(800, "breakout,asterix", [1.0, 3.0], [10.0, 20.0]))
        header, *rows = self._path.read_text().splitlines(keepends=True)
        self.assertEqual(header, HEADER)
        self.assertEqual(rows[0], "400,100,catch,4,0.5,0.8660254038,1,-1,1,,1.25\n")
        self.assertStartsWith(rows[1], "800,200,breakout,2,2,1,2,1,3,")
        self.assertStartsWith(rows[2], "800,200,asterix,2,15,5,15,10,20,")
        catch, breakout, asterix = log.read()
        self.assertIsNone(catch.normalised_score)
        self.assertEqual((catch.env_frames, catch.task, catch.mean_return), (400, "catch", 0.5))
        self.assertGreater(breakout.normalised_score, 0)
        self.assertEqual((asterix.median_return, asterix.seconds), (15.0, 1.25))

    def test_rows_with_missing_cells_are_damaged(self):
        row = "400,100,catch,4,0.5,0.75,1,-1,1,,1.25\n"
        damaged = (row.replace(",,", ","), row.replace("1.25", ""), row.replace("0.5", ""))
        self._path.write_text(HEADER + row + "".join(damaged) + row)
        with self.assertLogs(level="WARNING") as logs:
            self.assertLen(evaluation_log.EvaluationLog(self._folder).read(), 2)
        messages.assert_names(logs.output[0], self._path, 3)


class MetricsTest(absltest.TestCase):
    def test_one_task_has_no_metrics_by_task(self):
        summary = _summary(400, "catch", [1.0, 0.0], suite="catch")
        self.assertEqual(
            evaluation_log.metrics("catch", summary),
            {"episode/evaluation_mean_return": 0.5, "throughput/evaluation_seconds": 1.25},
        )

    def test_several_tasks_have_own_returns_and_scores(self):
        summary = _summary(400, "breakout,asterix", [1.0, 3.0], [10.0, 20.0])
        metrics = evaluation_log.metrics("minatar", summary)
        self.assertEqual(metrics["episode/evaluation_mean_return"], 8.5)
        self.assertEqual(metrics["task/asterix/evaluation_mean_return"], 15.0)
        scores = [of_task["normalised_score"] for of_task in summary["tasks"].values()]
        name = "episode/evaluation_median_single_task_normalised"
        self.assertAlmostEqual(metrics[name], sum(scores) / 2)
        self.assertIn("episode/evaluation_mean_capped_single_task_normalised", metrics)

    def test_tasks_without_references_have_no_scores(self):
        summary = _summary(400, "breakout,asterix", [1.0], [3.0])
        for of_task in summary["tasks"].values():
            of_task["normalised_score"] = None
        for name in [name for name in summary if "score" in name]:
            del summary[name]
        metrics = evaluation_log.metrics("dm_env", summary)
        self.assertFalse([name for name in metrics if "normalised" in name])


if __name__ == "__main__":
    absltest.main()
