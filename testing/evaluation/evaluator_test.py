"""Evaluations on other environments than a run's: which ones an agent can play."""

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf.environments import factory, gymnasium_suite, minatar
from laser_tf.evaluation import evaluator


class ChangedEnvironmentTest(parameterized.TestCase):
    def _changed(self, **changes: object) -> tuple[minatar.MinAtarConfig, dict]:
        trained_on = minatar.MinAtarConfig(task="breakout", num_envs=3)
        return evaluator._changed(trained_on, {"task": "breakout", "num_envs": 3}, changes)

    def test_other_values_are_played_and_the_rest_is_the_runs(self):
        changed, differing = self._changed(sticky_actions=0.5, task="breakout")
        self.assertEqual((changed.sticky_actions, changed.num_envs), (0.5, 3))
        self.assertEqual(differing, {"sticky_actions": 0.5})

    def test_a_task_by_another_of_its_names_is_no_other(self):
        changed, differing = self._changed(task="MinAtar/Breakout-v1")
        self.assertEqual((changed.task, differing), ("breakout", {}))

    @parameterized.parameters(
        ({"suite": "catch"}, "suite cannot be changed to 'catch': an agent plays the suite"),
        ({"num_envs": 4}, "num_envs cannot be changed to 4: .* follows from the number of episo"),
        ({"stiky_actions": 0.5}, "no environment key 'stiky_actions': did you mean sticky"),
        ({"sticky_actions": "often"}, "sticky_actions must be a number, got 'often'"),
    )
    def test_what_cannot_be_changed_is_refused(self, changes, message):
        with self.assertRaisesRegex(ValueError, message):
            self._changed(**changes)

    @parameterized.parameters(
        ("breakout,asterix", "has observations .* in 2 tasks, the run's observations"),
        ("freeway", r"has observations uint8\[10, 10, 7\].*the run's.*\[10, 10, 4\]"),
    )
    def test_what_the_agent_cannot_play_is_refused(self, task, message):
        spec = factory.environment_spec(minatar.MinAtarConfig(task=task))
        with self.assertRaisesRegex(ValueError, message):
            evaluator._check_playable(spec, minatar.MinAtarConfig(task="breakout"))

    @parameterized.parameters(([-3.0], [3.0]), (-3.0, 3.0))
    def test_actions_of_other_bounds_are_told_apart(self, lowest, highest):
        config = gymnasium_suite.GymnasiumConfig(task="Pendulum-v1")
        spec = factory.environment_spec(config)
        other = specs.BoundedArray([1], np.float32, lowest, highest)
        with self.assertRaisesRegex(
            ValueError, r"1 continuous actions in \[-3, 3\], the run's .* in \[-2, 2\]: the agent"
        ):
            evaluator._check_playable(spec._replace(action=other), config)

    def test_an_environment_that_is_gone_can_be_replaced(self):
        spec = factory.environment_spec(minatar.MinAtarConfig(task="breakout"))
        gone = gymnasium_suite.GymnasiumConfig(task="no_such_module:Old-v0")
        with self.assertLogs(level="INFO") as logs:
            evaluator._check_playable(spec, gone)
        self.assertRegex(logs.output[0], "the run's own environment cannot be made here: .*no_such")


if __name__ == "__main__":
    absltest.main()
