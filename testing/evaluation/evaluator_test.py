"""Evaluations on other environments than a run's: which ones an agent can play."""

from absl.testing import absltest, parameterized

from laser_tf.environments import minatar
from laser_tf.evaluation import evaluator


class ChangedEnvironmentTest(parameterized.TestCase):
    def _changed(self, **changes: object) -> minatar.MinAtarConfig:
        trained_on = minatar.MinAtarConfig(task="breakout", num_envs=3)
        return evaluator._changed(trained_on, {"task": "breakout", "num_envs": 3}, changes)

    def test_other_values_are_played_and_the_rest_is_the_runs(self):
        changed = self._changed(sticky_actions=0.5)
        self.assertEqual((changed.sticky_actions, changed.num_envs), (0.5, 3))

    @parameterized.parameters(
        ({"task": "breakout,asterix"}, "has observations .* in 2 tasks, the run's observations"),
        ({"task": "freeway"}, r"has observations uint8\[10, 10, 7\].*the run's.*\[10, 10, 4\]"),
        ({"suite": "catch"}, "suite is 'catch', but the run's is 'minatar'"),
        ({"stiky_actions": 0.5}, "no environment key 'stiky_actions': did you mean sticky"),
        ({"sticky_actions": "often"}, "config.environment: sticky_actions is 'often': use a num"),
    )
    def test_what_the_agent_cannot_play_is_refused(self, changes, message):
        with self.assertRaisesRegex(ValueError, message):
            self._changed(**changes)


if __name__ == "__main__":
    absltest.main()
