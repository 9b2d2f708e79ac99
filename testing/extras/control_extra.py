"""DeepMind's control suite, which `make test-extras` installs, through the suite dm_env."""

import numpy as np
from absl.testing import absltest

from testing.environments import rollouts


class ControlExtra(absltest.TestCase):
    def test_an_episode_of_a_task(self):
        given = "domain_name=cartpole, task_name=swingup, task_kwargs={'time_limit': 0.5}"
        with rollouts.make("dm_env", "dm_control.suite:load", num_envs=2, num_workers=1,
                           arguments=given) as environment:  # fmt: skip
            generator = np.random.default_rng(1)
            actions = [environment.random_actions(generator) for _ in range(120)]
            played = rollouts.play(environment, actions)
        self.assertEqual(actions[0].shape, (2, 1))
        self.assertGreater(played.is_first[1:].sum(), 0)
        np.testing.assert_array_equal(played.discount, 1)  # its episodes end by time alone
        self.assertBetween(played.reward.max(), 0.0, 1.0)
        for leaf in rollouts.leaves(played.observation):
            self.assertGreater(leaf.std(), 0)


if __name__ == "__main__":
    absltest.main()
