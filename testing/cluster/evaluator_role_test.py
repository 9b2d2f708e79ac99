"""The evaluator of a cluster, without Ray."""

from unittest import mock

import ray
from absl.testing import absltest

from laser_tf.cluster import evaluator_role, run_state
from laser_tf.environments import faults, worker_pool
from laser_tf.evaluation import evaluator


class EvaluatorRoleTest(absltest.TestCase):
    def test_failed_environment_reports_an_outcome(self):
        made = self.enter_context(
            mock.patch.object(evaluator.Evaluator, "during_training", autospec=True)
        )
        made.return_value.evaluate.side_effect = faults.EnvironmentFailedError("no end")
        self.enter_context(mock.patch.object(ray, "get"))
        context = mock.MagicMock()
        context.stop_requested.is_set.side_effect = [False, True]
        asked = run_state.PublishedWeights(
            learner_updates=3, env_frames=280, boxed_reference=[None]
        )
        context.call.side_effect = lambda method, *_: {"pending_eval": asked}.get(method)
        role = evaluator_role.EvaluatorRole(context, mock.Mock())
        with self.assertRaises(faults.EnvironmentFailedError):
            role.run()
        outcome = worker_pool.Failure("no end")
        context.call.assert_called_with("report_eval", asked, outcome)


class RemoteEvaluatorTest(absltest.TestCase):
    def test_evaluation_after_one_without_room_succeeds(self):
        evaluator = evaluator_role.RemoteEvaluator(mock.Mock())
        full = ray.exceptions.OutOfDiskError("no space left")
        put = self.enter_context(mock.patch.object(ray, "put", side_effect=full))
        self.enter_context(mock.patch.object(ray, "wait", return_value=([], [])))
        evaluator.begin([], 280, 7)
        self.assertIsInstance(evaluator.result(), worker_pool.Failure)
        put.side_effect = None
        evaluator.begin([], 560, 14)
        self.assertIsNone(evaluator.result())


if __name__ == "__main__":
    absltest.main()
