"""Tests of MinAtar against the environment of its package."""

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import minatar as adapter
from testing.environments import rollouts


class MinAtarTest(parameterized.TestCase):
    @parameterized.product(task=adapter.GAMES, sticky_actions=(0.0, 0.1))
    def test_steps_equal_the_package(self, task, sticky_actions):
        from minatar import environment as reference

        with rollouts.make("minatar", task, sticky_actions=sticky_actions, seed=3) as environment:
            actions = rollouts.random_actions(environment, 500)
            outputs = rollouts.run(environment, actions)
            self.assertEqual(environment.action_spec().num_values, 6)
        own = reference.Environment(task, sticky_action_prob=sticky_actions)
        own.seed(4)  # Seed of the second environment.
        own.reset()
        over = False
        for step, action in enumerate(actions[:, 1], start=1):
            reward, was_over = 0, over
            if over:
                own.reset()
                over = False
            else:
                reward, over = own.act(action)
            self.assertEqual(outputs.is_first[step, 1], was_over)
            self.assertEqual(
                (outputs.reward[step, 1], outputs.discount[step, 1]), (reward, 1 - over)
            )
            np.testing.assert_array_equal(outputs.observation[step, 1], 255 * own.state())

    @parameterized.parameters(*adapter.GAMES)
    def test_image_has_a_colour_for_each_channel(self, task):
        with rollouts.make("minatar", task) as environment:
            environment.reset()
            colours = {}
            for action in rollouts.random_actions(environment, 200):
                observation = environment.step(action).observation[0]
                image = environment.render(0)
                self.assertEqual((image.dtype, image.shape), (np.uint8, (160, 160, 3)))
                cells = image[::16, ::16]
                np.testing.assert_array_equal(cells.any(-1), observation.any(-1))
                alone = (observation != 0).sum(-1) == 1
                for channel, colour in zip(
                    observation[alone].argmax(-1), cells[alone], strict=True
                ):
                    colours.setdefault(int(channel), set()).add(tuple(colour.tolist()))
        self.assertGreater(len(colours), 1)
        self.assertLen(set.union(*colours.values()), len(colours))


if __name__ == "__main__":
    absltest.main()
