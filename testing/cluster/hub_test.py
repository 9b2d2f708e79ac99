"""What roles leave with the hub, and what the others get of it."""

from absl.testing import absltest

from laser_tf.cluster import hub
from laser_tf.environments import episode_statistics, game_processes


def _health(process: int) -> hub.Health:
    return hub.Health("host", "node", process, "learns", False, {"value": 1.0})


class HubTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._hub = hub.Hub()

    def test_the_newest_report_of_a_role_stands(self):
        self._hub.report("learner", _health(1))
        self._hub.report("learner", _health(2))
        healths = self._hub.healths()
        self.assertEqual(healths["learner"].process, 2)
        self.assertBetween(healths["learner"].seconds, 0.0, 5.0)

    def test_episodes_are_taken_once_and_in_order(self):
        first, second, third = (episode_statistics.Episode(0, 0, value, 9) for value in (1, 2, 3))
        self._hub.report("actor_00", _health(1), [first])
        self._hub.report("actor_01", _health(2), [second, third])
        self.assertEqual(self._hub.take_episodes(), [first, second, third])
        self.assertEqual(self._hub.take_episodes(), [])

    def test_replay_is_where_it_was_last(self):
        self.assertIsNone(self._hub.replay_address(0))
        self._hub.report("replay", _health(1), replay=(0, "here:1"))
        self._hub.report("replay", _health(1), replay=(0, "there:2"))
        self._hub.report("learner", _health(1))
        self.assertEqual(self._hub.replay_address(0), "there:2")

    def test_weights_are_given_to_whoever_has_others(self):
        self.assertIsNone(self._hub.newest_weights(-1))
        self._hub.publish(hub.Weights(7, 70, ["reference"]))
        self.assertIsNone(self._hub.newest_weights(7))
        self.assertEqual(self._hub.newest_weights(-1).learner_updates, 7)
        # Of a learner that has gone back to its checkpoint.
        self._hub.publish(hub.Weights(5, 50, ["reference"]))
        self.assertEqual(self._hub.newest_weights(7).learner_updates, 5)

    def test_learners_meet_when_all_are_there(self):
        self.assertIsNone(self._hub.meet(0, "a:1", 2))
        self.assertIsNone(self._hub.meet(0, "a:1", 2))
        self.assertEqual(self._hub.meet(1, "b:1", 2), ["a:1", "b:1"])
        self.assertEqual(self._hub.meet(0, "a:1", 2), ["a:1", "b:1"])

    def test_a_learner_that_was_begun_again_waits_for_the_others_to_be(self):
        self._hub.meet(0, "a:1", 2)
        self._hub.meet(1, "b:1", 2)
        self.assertIsNone(self._hub.meet(1, "b:2", 2))
        self.assertIsNone(self._hub.meet(1, "b:2", 2))
        self.assertEqual(self._hub.meet(0, "a:2", 2), ["a:2", "b:2"])

    def test_one_that_waits_while_another_begins_again_is_not_forgotten(self):
        self._hub.meet(0, "a:1", 3)
        self._hub.meet(1, "b:1", 3)
        self.assertIsNone(self._hub.meet(1, "b:2", 3))
        self.assertIsNone(self._hub.meet(2, "c:1", 3))
        self.assertEqual(self._hub.meet(0, "a:1", 3), ["a:1", "b:2", "c:1"])

    def test_an_evaluation_is_asked_for_until_there_is_an_outcome(self):
        self.assertIsNone(self._hub.asked_evaluation())
        weights = hub.Weights(7, 70, ["reference"])
        self._hub.ask_evaluation(weights)
        # An evaluator that died asks again.
        self.assertEqual(self._hub.asked_evaluation(), weights)
        self.assertEqual(self._hub.asked_evaluation(), weights)
        self.assertIsNone(self._hub.take_evaluation())
        self._hub.give_evaluation(70, {"mean_return": 1.0})
        self.assertIsNone(self._hub.asked_evaluation())
        self.assertEqual(self._hub.take_evaluation(), {"mean_return": 1.0})
        self.assertIsNone(self._hub.take_evaluation())

    def test_the_outcome_of_other_weights_is_not_taken(self):
        self._hub.ask_evaluation(hub.Weights(7, 70, ["reference"]))
        self._hub.ask_evaluation(hub.Weights(9, 90, ["reference"]))
        self._hub.give_evaluation(70, game_processes.Failure("late"))
        self.assertIsNone(self._hub.take_evaluation())
        self.assertEqual(self._hub.asked_evaluation().env_frames, 90)


if __name__ == "__main__":
    absltest.main()
