"""The shared state of a run, without Ray."""

from absl.testing import absltest

from laser_tf.cluster import run_state

_REQUEST = run_state.PublishedWeights(7, 280, ["reference"])


class EvaluationTest(absltest.TestCase):
    def test_outcome_answers_the_request_for_the_same_weights(self):
        state = run_state.RunState()
        self.assertIsNone(state.request_or_poll_eval(_REQUEST))
        self.assertEqual(state.pending_eval(), _REQUEST)
        state.report_eval(_REQUEST._replace(env_frames=240), {"mean_return": 1.0})
        self.assertIsNone(state.request_or_poll_eval(_REQUEST))
        state.report_eval(_REQUEST, {"mean_return": 2.0})
        self.assertIsNone(state.pending_eval())
        self.assertEqual(state.request_or_poll_eval(_REQUEST), {"mean_return": 2.0})
        self.assertIsNone(state.request_or_poll_eval(run_state.PublishedWeights(9, 320, [None])))

    def test_restarted_learner_gets_no_outcome_of_its_predecessor(self):
        state = run_state.RunState()
        state.request_or_poll_eval(_REQUEST)
        state.report_eval(_REQUEST, {"mean_return": 2.0})
        again = _REQUEST._replace(boxed_reference=["of the next process"])
        self.assertIsNone(state.request_or_poll_eval(again))
        self.assertEqual(state.pending_eval(), again)


class ExchangeTest(absltest.TestCase):
    def test_exchange_returns_episodes_once_and_keeps_weights(self):
        state = run_state.RunState()
        heartbeat = run_state.Heartbeat("host", 7, run_state.Status.RUNNING, "", False, {})
        state.report("actor_00", heartbeat, ["episode"], None)
        episodes, heartbeats = state.exchange(_REQUEST)
        self.assertEqual((episodes, list(heartbeats)), (["episode"], ["actor_00"]))
        self.assertEqual(state.exchange(None)[0], [])
        self.assertEqual(state.newest_weights(6), _REQUEST)
        self.assertIsNone(state.newest_weights(7))


class RendezvousTest(absltest.TestCase):
    def test_restarted_learner_starts_a_new_round(self):
        state = run_state.RunState()
        self.assertIsNone(state.rendezvous(0, "a:1", 2))
        self.assertEqual(state.rendezvous(1, "b:1", 2), ["a:1", "b:1"])
        self.assertIsNone(state.rendezvous(1, "b:2", 2))
        self.assertEqual(state.rendezvous(0, "a:2", 2), ["a:2", "b:2"])


if __name__ == "__main__":
    absltest.main()
