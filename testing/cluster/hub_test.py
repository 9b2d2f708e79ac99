"""The hub, without Ray: what it knows, and what it does not after a restart."""

from absl.testing import absltest

from laser_tf.cluster import hub
from laser_tf.environments import worker_pool

_ASKED = hub.Weights(7, 280, [None])


class EvaluationTest(absltest.TestCase):
    def test_an_outcome_is_taken_once(self):
        run_hub = hub.Hub()
        run_hub.ask_evaluation(_ASKED)
        self.assertEqual(run_hub.asked_evaluation(), _ASKED)
        self.assertIsNone(run_hub.take_evaluation(280))
        run_hub.give_evaluation(280, {"mean_return": 1.0})
        self.assertIsNone(run_hub.asked_evaluation())
        self.assertEqual(run_hub.take_evaluation(280), {"mean_return": 1.0})

    def test_an_outcome_of_other_weights_is_not_taken(self):
        run_hub = hub.Hub()
        run_hub.ask_evaluation(_ASKED)
        run_hub.give_evaluation(240, {"mean_return": 1.0})
        self.assertIsNone(run_hub.take_evaluation(280))

    def test_a_question_that_a_restarted_hub_has_not_heard_has_failed(self):
        # Else the learner would wait for it for ever, and never ask again.
        self.assertIsInstance(hub.Hub().take_evaluation(280), worker_pool.Failure)


if __name__ == "__main__":
    absltest.main()
