"""What an evaluation's file says, against numbers worked out by hand."""

import dataclasses
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.evaluation import episode_player, evaluation_summary
from testing import fakes

ATARI = {
    "suite": "atari", "task": "pong", "action_repeat": 4, "no_op_max": 37, "sticky_actions": 0.25,
    "max_frames_per_episode": 108_000,
}  # fmt: skip


def _games(task: int, *returns: float) -> list[episode_player.Game]:
    return [episode_player.Game(0, task, 0, value, 9) for value in returns]


class EvaluationSummaryTest(parameterized.TestCase):
    def test_returns_and_what_they_come_to(self):
        config = fakes.catch_config(environment={"suite": "minatar", "task": "breakout,asterix"})
        counters = mock.Mock(agent_steps=100, learner_updates=7, wall_seconds=50.0)
        games = [*_games(1, 10.0, 20.0), *_games(0, 1.0, 3.0)]
        summary = evaluation_summary.summarise(config, config.environment, counters, games)
        self.assertEqual(summary["tasks"]["breakout"]["returns"], [1.0, 3.0])
        self.assertEqual(summary["tasks"]["breakout"]["standard_deviation"], 1.0)
        self.assertEqual(summary["tasks"]["asterix"]["returns"], [10.0, 20.0])
        self.assertEqual(summary["mean_return"], 8.5)
        self.assertEqual(summary["median_return"], 6.5)
        self.assertEqual((summary["min_return"], summary["max_return"]), (1.0, 20.0))
        # Of 1, 3, 10 and 20: the mean square is 127.5, the mean 8.5.
        self.assertAlmostEqual(summary["standard_deviation"], (127.5 - 8.5**2) ** 0.5)
        self.assertEqual((summary["episodes"], summary["learner_updates"]), (4, 7))

    def test_the_protocol_of_atari(self):
        config = fakes.catch_config(environment=ATARI)
        stated = evaluation_summary.protocol(
            config.environment, episodes=200, num_envs=32, seed=5, action_selection="sampled"
        )
        self.assertEqual(
            stated,
            {
                "suite": "atari",
                "episodes_per_task": 200,
                "environments_at_once_per_task": 32,
                "seed": 5,
                "action_selection": "sampled",
                "rewards": "raw",
                "protocol": "own",
                "no_ops": "1 to 37",
                "sticky_actions": 0.25,
                "full_action_space": False,
                "life_loss_ends_episode": False,
                "action_repeat": 4,
                "max_frames_per_episode": 108_000,
            },
        )

    def test_what_a_suite_does_not_have_is_left_out(self):
        stated = evaluation_summary.protocol(
            fakes.catch_config().environment,
            episodes=1,
            num_envs=1,
            seed=1,
            action_selection="greedy",
        )
        for name in ("no_ops", "full_action_space", "life_loss_ends_episode"):
            self.assertNotIn(name, stated)
        self.assertEqual(stated["action_selection"], "greedy")
        self.assertEqual(stated["reward_offset"], 0.0)  # of catch

    def test_frames_of_training_are_the_runs_whatever_is_played(self):
        config = fakes.catch_config(environment=ATARI)
        played = dataclasses.replace(config.environment, action_repeat=2)
        counters = mock.Mock(agent_steps=100, learner_updates=7, wall_seconds=50.0)
        summary = evaluation_summary.summarise(config, played, counters, _games(0, 1.0))
        self.assertEqual(summary["env_frames"], 400)


if __name__ == "__main__":
    absltest.main()
