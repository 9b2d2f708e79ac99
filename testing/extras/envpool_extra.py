"""EnvPool, which `make test-extras` installs; `make test` has vector environments of gymnasium."""

import contextlib
import re

import envpool
import numpy as np
from absl.testing import absltest

from laser_tf.environments import factory, gymnasium_suite, user_functions
from testing import pages
from testing.environments import rollouts


def make_carts(num_envs, seed):
    return envpool.make_gymnasium("CartPole-v1", num_envs=num_envs, seed=seed, max_episode_steps=20)


class EnvPoolExtra(absltest.TestCase):
    def test_steps_are_those_of_the_pool(self):
        limit = 12  # agent steps; this package cuts these episodes by a masked reset
        with rollouts.make("gymnasium_vector", f"{__name__}:make_carts", num_envs=6, seed=3,
                           max_frames_per_episode=limit) as environment:  # fmt: skip
            actions = rollouts.random_actions(environment, 60)
            steps = rollouts.run(environment, actions)
        for index in range(6):
            self._assert_same_as_alone(steps, index, actions[:, index], limit)
        self.assertEqual(set(steps.discount[:-1][steps.is_first[1:]]), {0, 1})

    def test_documented_pool_shows_images(self):
        (module,) = re.findall(r"```python\n(import envpool.*?)```",
                               pages.text("docs/custom_configs.md"), re.S)  # fmt: skip
        functions: dict = {}
        exec(module, functions)
        config = user_functions.configure(
            gymnasium_suite.GymnasiumConfig(num_envs=2, action_repeat=4), functions["make"]
        )
        with contextlib.closing(factory.make_environment(config, seed=1)) as environment:
            steps = rollouts.run(environment, rollouts.random_actions(environment, 5))
        self.assertEqual(steps.observation.shape, (6, 2, 84, 84, 1))
        self.assertGreater(steps.observation.std(), 0)

    def _assert_same_as_alone(self, steps, index, actions, limit):
        """Repeats the steps of environment `index` in a pool of one, which it resets itself."""
        pool, is_over = make_carts(1, seed=3 + index), True
        for step, action in enumerate((0, *actions)):
            if is_over:
                observation, _ = pool.reset()
                reward, discount, length, is_over = 0, 1, 0, False
            else:
                observation, (reward,), (terminated,), (truncated,), _ = pool.step(action[None])
                discount, length = float(not terminated), length + 1
                is_over = terminated or truncated or length == limit
            np.testing.assert_array_equal(steps.observation[step, index], observation[0])
            self.assertEqual(steps.is_first[step, index], length == 0)
            self.assertEqual((steps.reward[step, index], steps.discount[step, index]),
                             (reward, discount))  # fmt: skip


if __name__ == "__main__":
    absltest.main()
