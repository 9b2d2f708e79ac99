"""The figure of LASER on Atari: what it trains, and what does not compare."""

from absl.testing import absltest, parameterized

from configs import laser_atari, r2d2_atari
from laser_tf import errors
from laser_tf.analysis import figures_atari
from laser_tf.training import run_config
from testing import flag_values

CHOSEN = figures_atari.FIGURES["atari"]


class FiguresAtariTest(parameterized.TestCase):
    def test_all_games_are_played_by_dopamines_protocol(self):
        name, _, argument = CHOSEN.config.partition(":")
        self.assertEqual(name, "configs/laser_atari.py")
        base = laser_atari.get_config(argument).to_dict()
        figures_atari.check("atari", base)
        (condition,) = CHOSEN.conditions
        for game in CHOSEN.games:
            self.assertIn(game, CHOSEN.known_games)
            flags = CHOSEN.defaults | condition.values(base, game, 2)
            run = run_config.parse(flag_values.changed(base, flags))
            self.assertEqual((run.environment.task, run.run.seed), (game, 1_001))
            self.assertEqual(run.environment.protocol()["protocol"], "dopamine")
            self.assertEqual((run.run.env_frames, run.run.evaluation_episodes), (10_000_000, 0))

    @parameterized.parameters(
        ("life_loss_is_end", True), ("no_op_max", 30), ("suite", "minatar"),
        ("max_frames_per_episode", 18_000), ("full_action_space", True),
    )  # fmt: skip
    def test_another_protocol_does_not_compare(self, key, value):
        config = laser_atari.get_config("dopamine").to_dict()
        config["environment"][key] = value
        message = (
            f"environment.{key} is {value}, not .*: leave it out, and use .*_atari.py:dopamine"
        )
        with self.assertRaisesRegex(errors.UserError, message):
            figures_atari.check("atari", config)

    def test_rewards_may_be_learned_from_as_they_are(self):
        base = laser_atari.get_config("dopamine").to_dict()
        flags = {"agent.reward_clip": "none", "agent.popart": True}
        config = flag_values.changed(base, flags)
        figures_atari.check("atari", config)
        agent = run_config.parse(config).agent
        self.assertEqual((agent.reward_clip, agent.popart), ("none", True))
        self.assertEqual((base["agent"]["reward_clip"], base["agent"]["popart"]), ("unit", False))

    def test_another_agent_does_not_compare(self):
        with self.assertRaisesRegex(errors.UserError, "variants of laser, not r2d2"):
            figures_atari.check("atari", r2d2_atari.get_config().to_dict())


if __name__ == "__main__":
    absltest.main()
