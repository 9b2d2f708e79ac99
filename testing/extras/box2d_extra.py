"""Box2D, which `make test-extras` installs, under gymnasium's LunarLander-v3."""

import numpy as np
from absl.testing import absltest, parameterized

from testing.environments import rollouts


class Box2DExtra(parameterized.TestCase):
    @parameterized.parameters(("", ()), ("continuous=true", (2,)))
    def test_episode_ends_and_has_an_image(self, arguments, action_shape):
        with rollouts.make("gymnasium", "LunarLander-v3", num_envs=2, num_workers=1,
                           arguments=arguments, rendering=True) as environment:  # fmt: skip
            self.assertEqual(environment.action_spec().shape, action_shape)
            rows = rollouts.run(environment, rollouts.random_actions(environment, 200))
            image = environment.render(0)
        self.assertEqual(rows.observation.shape, (201, 2, 8))
        self.assertGreater(rows.is_first[1:].sum(), 0)
        self.assertLess(rows.reward.min(), -50)  # Random actions crash.
        self.assertEqual((image.shape, image.dtype), ((400, 600, 3), np.uint8))
        self.assertGreater(image.std(), 0)


if __name__ == "__main__":
    absltest.main()
