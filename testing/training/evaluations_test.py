"""Tests of evaluations during training: schedule, weights, results and failures."""

import types
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.environments import worker_pool
from laser_tf.monitoring import evaluation_log, tensorboard
from laser_tf.training import evaluations
from testing import fakes, folders, messages

PERIOD = 100  # env frames
CONFIG = fakes.catch_config(run={"evaluate_every_env_frames": PERIOD})


class _Evaluator:
    """Takes weights, and answers when the test says what."""

    def __init__(self):
        self.begun = []  # (first weight, env frames, updates)
        self.outcome = None

    def begin(self, weights, env_frames, learner_updates):
        self.weights = weights
        self.begun.append((float(weights[0][0]), env_frames, learner_updates))

    def result(self):
        outcome, self.outcome = self.outcome, None
        return outcome

    def finish(self, mean_return=0.5):
        _, env_frames, updates = self.begun[-1]
        returns = mean_return - 1.5, mean_return + 1.5
        self.outcome = fakes.evaluation_summary(env_frames, updates, *returns)


class EvaluationsTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._evaluator = _Evaluator()
        self._variable = tf.Variable([0.0])
        self._writer = tensorboard.MetricsWriter(self._folder / "tensorboard")

    def _make(
        self, env_frames: int | None = None, evaluates: bool = True
    ) -> evaluations.Evaluations:
        """Evaluations that are new, or resumed at a number of frames."""
        agent = types.SimpleNamespace(acting_variables=(self._variable,))
        evaluator = self._evaluator if evaluates else None
        made = evaluations.Evaluations(CONFIG, self._folder, agent, evaluator, mock.Mock())
        made.resume(env_frames)
        return made

    def _offer(self, periodic: evaluations.Evaluations, *frames: int) -> None:
        for env_frames in frames:
            self._variable.assign([float(env_frames)])
            periodic.update(env_frames, env_frames // 10, self._writer)

    def _rows(self) -> list[int]:
        return [row.env_frames for row in evaluation_log.EvaluationLog(self._folder).read()]

    def test_weights_of_each_period_are_evaluated(self):
        periodic = self._make()
        for frames in range(0, 321, 20):
            self._offer(periodic, frames)
            if self._evaluator.begun and self._evaluator.begun[-1][1] == frames:
                self._evaluator.finish()
        expected = [(100.0, 100, 10), (200.0, 200, 20), (300.0, 300, 30)]
        self.assertEqual(self._evaluator.begun, expected)
        self.assertEqual(self._rows(), [100, 200, 300])

    def test_evaluations_due_in_the_meantime_are_skipped(self):
        periodic = self._make()
        self._offer(periodic, *range(0, 441, 40))
        self.assertEqual([begun[1] for begun in self._evaluator.begun], [120])
        self._evaluator.finish()
        self._offer(periodic, 450, 460, 490)
        # Evaluations of 200, 300 and 400 are skipped; the next is due at 500.
        self.assertEqual([begun[:2] for begun in self._evaluator.begun], [(120, 120), (450, 450)])
        self._evaluator.finish()
        self._offer(periodic, 499, 500)
        self.assertEqual(self._evaluator.begun[-1], (500.0, 500, 50))

    def test_later_updates_leave_evaluated_weights_unchanged(self):
        periodic = self._make()
        self._offer(periodic, 100)
        self._variable.assign_add([1.0])
        np.testing.assert_array_equal(self._evaluator.weights, [[100.0]])

    def test_results_are_in_the_log_and_in_tensorboard(self):
        periodic = self._make()
        self._offer(periodic, 100)
        self._evaluator.finish(mean_return=0.25)
        # The metrics of an evaluation are at the env frames of its weights.
        self._writer.write(180, {tensorboard.RETURN: 0.75})
        self._offer(periodic, 190)
        self._writer.write(220, {tensorboard.RETURN: 0.8})
        (row,) = evaluation_log.EvaluationLog(self._folder).read()
        self.assertEqual(row[:4], (100, 10, "catch", 2))
        self.assertEqual(row[4:9], (0.25, 1.5, 0.25, -1.25, 1.75))
        self.assertIsNone(row.normalised_score)
        self.assertEqual(row.seconds, 2.5)
        for name, expected in (
            (evaluation_log.RETURN, ([100], [0.25])),
            ("throughput/evaluation_seconds", ([100], [2.5])),
            (tensorboard.RETURN, ([180, 220], [0.75, 0.8])),
        ):
            frames, values = tensorboard.read_scalars(self._folder / "tensorboard", name)
            np.testing.assert_array_equal(frames, expected[0])
            np.testing.assert_allclose(values, expected[1])

    def test_repeated_failures_are_logged_once(self):
        periodic = self._make()
        with self.assertLogs(level="INFO") as logs:
            for frames in (100, 200):
                self._offer(periodic, frames)
                self._evaluator.outcome = worker_pool.Failure("died with exit code 3")
                self._offer(periodic, frames + 10, frames + 20)
            self._offer(periodic, 300)
            self._evaluator.finish()
            self._offer(periodic, 310)
        self.assertEqual([record.levelname for record in logs.records], ["WARNING", "INFO"])
        messages.assert_names(logs.output[0], "died with exit code 3")
        self.assertEqual([begun[1] for begun in self._evaluator.begun], [100, 200, 300])
        self.assertEqual(self._rows(), [300])

    def test_resumed_run_drops_later_evaluations(self):
        periodic = self._make()
        for frames in (100, 200, 300):
            self._offer(periodic, frames)
            self._evaluator.finish()
        self._offer(periodic, 310)
        self.assertEqual(self._rows(), [100, 200, 300])
        again = self._make(250)
        self.assertEqual(self._rows(), [100, 200])
        self._offer(again, 260, 290)
        self.assertLen(self._evaluator.begun, 3)  # 200 was evaluated before.
        self._offer(again, 301)
        self._evaluator.finish()
        self._offer(again, 310)
        self.assertEqual(self._rows(), [100, 200, 301])

    def test_unfinished_evaluation_is_due_in_a_resumed_run(self):
        periodic = self._make()
        self._offer(periodic, 100)
        self._evaluator.finish()
        self._offer(periodic, 110, 200, 230)  # The evaluation of 200 has no result yet.
        again = self._make(230)
        self._offer(again, 240)
        self.assertEqual(self._evaluator.begun[-1], (240.0, 240, 24))
        self._evaluator.finish()
        self._offer(again, 250, 290)
        self.assertEqual(self._rows(), [100, 240])
        self.assertLen(self._evaluator.begun, 3)

    @parameterized.parameters(False, True)
    def test_without_an_evaluator_no_log_is_created(self, was_evaluated):
        path = self._folder / evaluation_log.FILE
        if was_evaluated:  # before it was switched off
            before = self._make()
            for frames in (100, 200):
                self._offer(before, frames)
                self._evaluator.finish()
            self._offer(before, 210)
        periodic = self._make(150, evaluates=False)
        self._offer(periodic, 160, 500)
        periodic.finish(self._writer, lambda: False)
        self.assertEqual(self._rows(), [100] if was_evaluated else [])
        self.assertEqual(path.exists(), was_evaluated)

    def test_last_evaluation_delays_only_a_finished_run(self):
        periodic = self._make()
        periodic.finish(self._writer, lambda: self.fail("waits for nothing"))
        self._offer(periodic, 100)
        looks = []

        def look() -> bool:
            looks.append(len(looks))
            if len(looks) == 3:
                self._evaluator.finish()
            return False

        periodic.finish(self._writer, look)
        self.assertEqual(self._rows(), [100])
        self._offer(periodic, 200)
        periodic.finish(self._writer, lambda: True)
        self.assertEqual(self._rows(), [100])
        self.assertLen(self._evaluator.begun, 2)

    def test_last_evaluation_delays_the_end_up_to_a_limit(self):
        agent = types.SimpleNamespace(acting_variables=(self._variable,))
        periodic = evaluations.Evaluations(
            CONFIG, self._folder, agent, self._evaluator, mock.Mock(), last_seconds=0.1
        )
        periodic.resume(None)
        self._offer(periodic, 100)
        periodic.finish(self._writer, lambda: False)
        self.assertEmpty(self._rows())


if __name__ == "__main__":
    absltest.main()
