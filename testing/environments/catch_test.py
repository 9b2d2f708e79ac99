"""Tests of catch against a loop over one board."""

import numpy as np
from absl.testing import absltest

from testing.environments import rollouts


class CatchTest(absltest.TestCase):
    def test_steps_equal_a_loop_over_one_board(self):
        with rollouts.make("catch", "catch", num_envs=5, seed=11) as environment:
            actions = rollouts.random_actions(environment, 100)
            outputs = rollouts.run(environment, actions)
        for index in range(5):
            for start in range(0, 100, 10):
                self.assertTrue(outputs.is_first[start, index])
                ball, paddle = int(outputs.observation[start, index, 0, :, 0].argmax()), 2
                for step in range(start, start + 10):
                    board = np.zeros([10, 5])
                    board[step - start, ball] = board[9, paddle] = 255
                    np.testing.assert_array_equal(outputs.observation[step, index, :, :, 0], board)
                    landed = step - start == 9
                    reward = (1 if ball == paddle else -1) if landed else 0
                    self.assertEqual(outputs.reward[step, index], reward)
                    self.assertEqual(outputs.discount[step, index], 0 if landed else 1)
                    paddle = min(max(paddle + actions[step, index] - 1, 0), 4)

    def test_columns_are_uniform_and_independent(self):
        with rollouts.make("catch", "catch", num_envs=2000, seed=1) as environment:
            columns = [environment.reset().observation[:, 0, :, 0].argmax(-1) for _ in range(4)]
        for episode in columns:
            np.testing.assert_allclose(np.bincount(episode, minlength=5), 400, atol=80)
        # Uncorrelated between episodes and between environments of neighbouring seeds.
        self.assertLess(abs(np.corrcoef(columns[0], columns[1])[0, 1]), 0.1)
        self.assertLess(abs(np.corrcoef(columns[0][1:], columns[0][:-1])[0, 1]), 0.1)
        self.assertLess(abs(np.corrcoef(columns[0][1:], columns[1][:-1])[0, 1]), 0.1)

    def test_image_shows_ball_and_paddle(self):
        with rollouts.make("catch", "catch") as environment:
            observation = environment.reset().observation[1]
            image = environment.render(1)
        self.assertEqual((image.dtype, image.shape), (np.uint8, (160, 80, 3)))
        np.testing.assert_array_equal(image[8::16, 8::16], observation.repeat(3, axis=-1))


if __name__ == "__main__":
    absltest.main()
