"""Box2D, which `make test-extras` installs, under gymnasium's LunarLander-v3."""

import numpy as np
from absl.testing import absltest, parameterized

from testing.environments import rollouts


class Box2DExtra(parameterized.TestCase):
    @parameterized.parameters(("", ()), ("continuous=true", (2,)))
    def test_an_episode_with_its_picture(self, arguments, action_shape):
        with rollouts.make("gymnasium", "LunarLander-v3", num_envs=2, num_workers=1,
                           arguments=arguments, rendering=True) as environment:  # fmt: skip
            self.assertEqual(environment.action_spec().shape, action_shape)
            generator = np.random.default_rng(1)
            actions = [environment.random_actions(generator) for _ in range(200)]
            played = rollouts.play(environment, actions)
            picture = environment.render(0)
        self.assertEqual(played.observation.shape, (201, 2, 8))
        self.assertGreater(played.is_first[1:].sum(), 0)
        self.assertLess(played.reward.min(), -50)  # at random it crashes
        self.assertEqual((picture.shape, picture.dtype), ((400, 600, 3), np.uint8))
        self.assertGreater(picture.std(), 0)


if __name__ == "__main__":
    absltest.main()
