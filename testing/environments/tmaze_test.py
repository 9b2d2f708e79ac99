"""Tests of the T-maze: observations, rewards and ends of episodes."""

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import tmaze
from testing.environments import rollouts

UP, RIGHT, DOWN, LEFT = tmaze.UP, tmaze.RIGHT, tmaze.DOWN, tmaze.LEFT


def make(corridor_length=4, **options):
    return rollouts.make("tmaze", "tmaze", corridor_length=corridor_length, **options)


def cues(first_observation):
    """Returns the correct actions of first observations [N, 3, 3, 1]."""
    return np.where(first_observation[:, 0, 0, 0] == 255, UP, DOWN)


def image(*bright):
    """Returns an observation with the given cells bright."""
    board = np.zeros([3, 3, 1], np.uint8)
    for row, column in bright:
        board[row, column] = 255
    return board


class TMazeTest(parameterized.TestCase):
    @parameterized.parameters(1, 4, 30)
    def test_path_shows_the_cue_once_and_equal_corridor_cells(self, length):
        with make(length, num_envs=20) as environment:
            outputs = rollouts.run(environment, np.full([length + 1, 20], RIGHT))
        start = outputs.observation[0]
        cue_rows = cues(start)  # UP is the row above, DOWN the row below.
        self.assertEqual(set(cue_rows), {0, 2})
        for board, cue_row in zip(start, cue_rows, strict=True):
            np.testing.assert_array_equal(board, image((1, 0), (cue_row, 0)))
        for step in range(1, length + 1):
            for board in outputs.observation[step]:
                np.testing.assert_array_equal(board, image((1, 1)))
        for board in outputs.observation[length + 1]:
            np.testing.assert_array_equal(board, image((1, 2)))
        np.testing.assert_array_equal(outputs.reward, 0)
        np.testing.assert_array_equal(outputs.discount, 1)
        np.testing.assert_array_equal(outputs.is_first[1:], False)

    @parameterized.parameters((1, 1.0), (-1, -1.0))
    def test_arms_end_the_episode(self, side, reward):
        with make(num_envs=10) as environment:
            cue = cues(environment.reset().observation)
            for _ in range(5):
                environment.step(np.full(10, RIGHT))
            turn = cue if side == 1 else UP + DOWN - cue
            end = environment.step(turn)
            after = environment.step(np.full(10, RIGHT))
        np.testing.assert_array_equal(end.reward, reward)
        np.testing.assert_array_equal(end.discount, 0)
        np.testing.assert_array_equal(end.is_first, False)
        for board, row in zip(end.observation, turn, strict=True):
            np.testing.assert_array_equal(board, image((row, 2)))
        np.testing.assert_array_equal(after.is_first, True)
        np.testing.assert_array_equal(after.reward, 0)
        np.testing.assert_array_equal(after.discount, 1)
        np.testing.assert_array_equal(after.observation[:, 1, 0, 0], 255)

    @parameterized.named_parameters(
        ("above_the_start", [UP], (1, 0)),
        ("below_the_start", [DOWN], (1, 0)),
        ("left_of_the_start", [LEFT], (1, 0)),
        ("above_the_corridor", [RIGHT, UP], (1, 1)),
        ("below_the_corridor", [RIGHT, DOWN], (1, 1)),
        ("back_to_the_start_without_cue", [RIGHT, LEFT], (1, 0)),
        ("right_of_the_junction", [RIGHT] * 5 + [RIGHT], (1, 2)),
        ("back_from_the_junction", [RIGHT] * 5 + [LEFT], (1, 1)),
    )
    def test_walls_and_steps_back_have_a_penalty(self, actions, cell):
        with make(num_envs=1) as environment:
            outputs = rollouts.run(environment, np.array(actions)[:, None])
        np.testing.assert_array_equal(outputs.reward[:-1], 0)
        self.assertEqual(outputs.reward[-1, 0], np.float32(-1 / 6))
        self.assertEqual(outputs.discount[-1, 0], 1)
        np.testing.assert_array_equal(outputs.observation[-1, 0], image(cell))

    @parameterized.parameters(1, 4)
    def test_time_limit_keeps_the_discount(self, length):
        limit = 2 * (length + 2)
        with make(length) as environment:
            outputs = rollouts.run(environment, np.full([2 * limit + 2, 2], LEFT))
        np.testing.assert_array_equal(
            np.flatnonzero(outputs.is_first[:, 0]), [0, limit + 1, 2 * limit + 2]
        )
        np.testing.assert_array_equal(outputs.discount, 1)
        np.testing.assert_allclose(outputs.reward[1 : limit + 1].sum(0), -2, rtol=1e-5)

    def test_arm_at_the_time_limit_has_discount_0(self):
        with make(num_envs=10) as environment:
            outputs = rollouts.run(environment, np.array([[LEFT] * 10] * 6 + [[RIGHT] * 10] * 5))
            end = environment.step(np.full(10, UP))
        np.testing.assert_array_equal(end.discount, 0)
        np.testing.assert_array_equal(
            end.reward, np.where(cues(outputs.observation[0]) == UP, 1.0, -1.0)
        )

    def test_image_shows_the_agent_and_the_correct_arm(self):
        with make(num_envs=1) as environment:
            cue = cues(environment.reset().observation)[0]
            environment.step(np.array([RIGHT]))
            rendered = environment.render(0)
        self.assertEqual((rendered.dtype, rendered.shape), (np.uint8, (96, 192, 3)))
        cells = rendered[16::32, 16::32]
        np.testing.assert_array_equal(np.argwhere(cells.min(-1) == 255), [[1, 1]])
        np.testing.assert_array_equal(np.argwhere(cells[:, :, 1] > cells[:, :, 0]), [[cue, 5]])


if __name__ == "__main__":
    absltest.main()
