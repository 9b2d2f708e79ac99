"""The T-maze against its description: what it shows, what it pays and when it ends."""

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import tmaze
from testing.environments import rollouts

UP, RIGHT, DOWN, LEFT = tmaze.UP, tmaze.RIGHT, tmaze.DOWN, tmaze.LEFT


def make(corridor_length=4, **options):
    return rollouts.make("tmaze", "tmaze", corridor_length=corridor_length, **options)


def cues(first_observation):
    """The action that each cue asks for, of observations [N, 3, 3, 1]."""
    return np.where(first_observation[:, 0, 0, 0] == 255, UP, DOWN)


def picture(*bright):
    """An observation with the given cells bright."""
    board = np.zeros([3, 3, 1], np.uint8)
    for row, column in bright:
        board[row, column] = 255
    return board


class TMazeTest(parameterized.TestCase):
    @parameterized.parameters(1, 4, 30)
    def test_the_way_shows_the_cue_once_and_corridor_cells_alike(self, length):
        with make(length, num_envs=20) as environment:
            rows = rollouts.play(environment, np.full([length + 1, 20], RIGHT))
        start = rows.observation[0]
        cue_rows = cues(start)  # UP is the row above, DOWN the row below
        self.assertEqual(set(cue_rows), {0, 2})
        for board, cue_row in zip(start, cue_rows, strict=True):
            np.testing.assert_array_equal(board, picture((1, 0), (cue_row, 0)))
        for step in range(1, length + 1):
            for board in rows.observation[step]:
                np.testing.assert_array_equal(board, picture((1, 1)))
        for board in rows.observation[length + 1]:
            np.testing.assert_array_equal(board, picture((1, 2)))
        np.testing.assert_array_equal(rows.reward, 0)
        np.testing.assert_array_equal(rows.discount, 1)
        np.testing.assert_array_equal(rows.is_first[1:], False)

    def test_the_start_without_its_cue_when_the_agent_stands_or_comes_back(self):
        with make() as environment:
            rows = rollouts.play(environment, [[UP, RIGHT], [LEFT, LEFT]])
        for board in (rows.observation[1, 0], rows.observation[2, 0], rows.observation[2, 1]):
            np.testing.assert_array_equal(board, picture((1, 0)))

    def test_cues_are_even_and_independent(self):
        with make(num_envs=2000, seed=1) as environment:
            shown = [cues(environment.reset().observation) for _ in range(3)]
        for episode in shown:
            self.assertAlmostEqual((episode == UP).mean(), 0.5, delta=0.05)
        self.assertLess(abs(np.corrcoef(shown[0], shown[1])[0, 1]), 0.1)
        self.assertLess(abs(np.corrcoef(shown[0][1:], shown[0][:-1])[0, 1]), 0.1)

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
            np.testing.assert_array_equal(board, picture((row, 2)))
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
        ("back_to_the_start", [RIGHT, LEFT], (1, 0)),
        ("right_of_the_junction", [RIGHT] * 5 + [RIGHT], (1, 2)),
        ("back_from_the_junction", [RIGHT] * 5 + [LEFT], (1, 1)),
    )
    def test_walls_and_ways_back_cost_a_step_of_the_shortest_way(self, actions, cell):
        with make(num_envs=1) as environment:
            rows = rollouts.play(environment, np.array(actions)[:, None])
        np.testing.assert_array_equal(rows.reward[:-1], 0)
        self.assertEqual(rows.reward[-1, 0], np.float32(-1 / 6))
        self.assertEqual(rows.discount[-1, 0], 1)
        np.testing.assert_array_equal(rows.observation[-1, 0], picture(cell))

    def test_a_wall_is_no_detour(self):
        # After a bump at the start the junction is as far as before, after a step back one more.
        for actions, at_junction in (
            ([UP] + [RIGHT] * 5, True),
            ([RIGHT, LEFT] + [RIGHT] * 4, False),
        ):
            with make(num_envs=1) as environment:
                rows = rollouts.play(environment, np.array(actions)[:, None])
            self.assertEqual(rows.observation[-1, 0, 1, 2, 0] == 255, at_junction)

    @parameterized.parameters(1, 4)
    def test_the_time_limit_keeps_the_discount_and_costs_2(self, length):
        limit = 2 * (length + 2)
        with make(length) as environment:
            rows = rollouts.play(environment, np.full([2 * limit + 2, 2], LEFT))
        np.testing.assert_array_equal(
            np.flatnonzero(rows.is_first[:, 0]), [0, limit + 1, 2 * limit + 2]
        )
        np.testing.assert_array_equal(rows.discount, 1)
        np.testing.assert_allclose(rows.reward[1 : limit + 1].sum(0), -2, rtol=1e-5)

    def test_an_arm_at_the_time_limit_is_an_arm(self):
        with make(num_envs=10) as environment:
            rows = rollouts.play(environment, np.array([[LEFT] * 10] * 6 + [[RIGHT] * 10] * 5))
            end = environment.step(np.full(10, UP))
        np.testing.assert_array_equal(end.discount, 0)
        np.testing.assert_array_equal(
            end.reward, np.where(cues(rows.observation[0]) == UP, 1.0, -1.0)
        )

    @parameterized.parameters(1, 10, 50)
    def test_memory_returns_1_and_the_best_without_it_0(self, length):
        with make(length, num_envs=2000, seed=5) as environment:
            remembered = cues(environment.reset().observation)
            returns = np.zeros(2000)
            for _ in range(length + 1):
                returns += environment.step(np.full(2000, RIGHT)).reward
            np.testing.assert_array_equal(returns + environment.step(remembered).reward, 1)
            environment.reset()
            for _ in range(length + 1):
                environment.step(np.full(2000, RIGHT))
            self.assertAlmostEqual(environment.step(np.full(2000, UP)).reward.mean(), 0, delta=0.1)

    def test_a_picture_shows_the_agent_and_the_right_arm(self):
        with make(num_envs=1) as environment:
            cue = cues(environment.reset().observation)[0]
            environment.step(np.array([RIGHT]))
            image = environment.render(0)
        self.assertEqual((image.dtype, image.shape), (np.uint8, (96, 192, 3)))
        cells = image[16::32, 16::32]
        np.testing.assert_array_equal(np.argwhere(cells.min(-1) == 255), [[1, 1]])
        np.testing.assert_array_equal(np.argwhere(cells[:, :, 1] > cells[:, :, 0]), [[cue, 5]])


if __name__ == "__main__":
    absltest.main()
