"""The shared state of a run, without Ray."""

from absl.testing import absltest

from laser_tf.cluster import run_state
from laser_tf.environments import worker_pool

_REQUEST = run_state.Weights(7, 280, [None])


class EvaluationTest(absltest.TestCase):
    def test_outcome_is_returned_once(self):
        state = run_state.RunState()
        state.request_eval(_REQUEST)
        self.assertEqual(state.pending_eval(), _REQUEST)
        self.assertIsNone(state.pop_eval(280))
        state.report_eval(280, {"mean_return": 1.0})
        self.assertIsNone(state.pending_eval())
        self.assertEqual(state.pop_eval(280), {"mean_return": 1.0})

    def test_outcome_of_other_weights_is_ignored(self):
        state = run_state.RunState()
        state.request_eval(_REQUEST)
        state.report_eval(240, {"mean_return": 1.0})
        self.assertIsNone(state.pop_eval(280))

    def test_request_lost_in_a_restart_is_a_failure(self):
        # The learner would otherwise wait without limit.
        self.assertIsInstance(run_state.RunState().pop_eval(280), worker_pool.Failure)


class RendezvousTest(absltest.TestCase):
    def test_restarted_learner_starts_a_new_round(self):
        state = run_state.RunState()
        self.assertIsNone(state.rendezvous(0, "a:1", 2))
        self.assertEqual(state.rendezvous(1, "b:1", 2), ["a:1", "b:1"])
        self.assertIsNone(state.rendezvous(1, "b:2", 2))
        self.assertEqual(state.rendezvous(0, "a:2", 2), ["a:2", "b:2"])


if __name__ == "__main__":
    absltest.main()
