"""The evaluator of a cluster, without Ray."""

from unittest import mock

import ray
from absl.testing import absltest

from laser_tf.cluster import evaluator_role, run_state
from laser_tf.environments import faults, worker_pool
from laser_tf.evaluation import continuous_evaluator


class EvaluatorRoleTest(absltest.TestCase):
    def test_failed_environment_reports_an_outcome(self):
        made = self.enter_context(
            mock.patch.object(continuous_evaluator, "ContinuousEvaluator", autospec=True)
        )
        made.return_value.evaluate.side_effect = faults.EnvironmentFailedError("no end")
        self.enter_context(mock.patch.object(ray, "get"))
        context = mock.MagicMock()
        context.stop.is_set.side_effect = [False, True]
        asked = run_state.Weights(learner_updates=3, env_frames=280, reference=[None])
        context.call.side_effect = lambda method, *_: {"pending_eval": asked}.get(method)
        role = evaluator_role.EvaluatorRole(context, mock.Mock())
        with self.assertRaises(faults.EnvironmentFailedError):
            role.run()
        outcome = worker_pool.Failure("no end")
        context.call.assert_called_with("report_eval", 280, outcome)


if __name__ == "__main__":
    absltest.main()
