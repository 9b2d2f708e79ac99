"""Values of configurations that follow from several keys, against the papers' numbers."""

from absl.testing import absltest, parameterized

from configs import acer, impala, laser, r2d2, reactor, sweeps
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config


def _parse(file, variant):
    values = file.get_config(variant).to_dict()
    return sweep_config.parse(values).first if file is sweeps else run_config.parse(values)


class ConfigsTest(parameterized.TestCase):
    @parameterized.parameters(
        (laser, "atari_paper", 32, 224),  # 87.5%
        (laser, "dmlab30", 32, 128),
        (sweeps, "atari_paper", 32, 128),
    )
    def test_batches_of_laser_are_those_of_section_5_1(self, file, variant, online, replayed):
        replay = _parse(file, variant).replay
        self.assertEqual((replay.online_entries, replay.replayed_entries), (online, replayed))

    def test_sweep_of_the_paper_has_nine_constant_agents(self):
        config = sweep_config.parse(sweeps.get_config("atari_paper").to_dict())
        members = config.members.values()
        tuned = {(member.learner.learning_rate, member.agent.entropy_cost) for member in members}
        rates, costs = (3e-4, 6e-4, 1.2e-3), (5e-3, 1e-2, 2e-2)
        self.assertEqual(tuned, {(rate, cost) for rate in rates for cost in costs})
        self.assertEqual(
            {member.learner.learning_rate_schedule for member in members}, {"constant"}
        )

    @parameterized.parameters(laser, sweeps)
    def test_atari_agents_of_laser_are_those_of_section_5_1(self, file):
        config = _parse(file, "atari_paper")
        self.assertEqual((config.agent.torso, config.agent.channel_multiplier), ("deep", 4))
        self.assertEqual((config.replay.unroll_length, config.agent.discount), (19, 0.995))
        self.assertEqual((config.learner.gradient_clip, config.environment.no_op_max), (0, 37))

    @parameterized.parameters("atari", "atari_paper")
    def test_discrete_agent_of_acer_is_that_of_section_4(self, variant):
        config = _parse(acer, variant)
        agent, replay = config.agent, config.replay
        self.assertEqual((agent.discount, agent.entropy_cost), (0.99, 0.001))
        self.assertEqual((agent.truncation, agent.delta, agent.average_decay), (10, 1, 0.99))
        self.assertEqual((replay.unroll_length, replay.replay_ratio), (20, 4))
        self.assertEqual(config.learner.learning_rate_schedule, "constant")

    def test_continuous_agent_of_acer_is_that_of_section_6(self):
        config = _parse(acer, "control")
        agent, replay = config.agent, config.replay
        self.assertEqual((agent.discount, agent.truncation), (0.99, 5))
        self.assertEqual((agent.average_decay, agent.policy_std), (0.995, 0.3))
        sampled = replay.batch_size * replay.unroll_length
        self.assertEqual(sampled / replay.steps_per_update, 8)  # times on average; ours

    def test_reactor_learns_from_33_frames_without_momentum(self):
        config = _parse(reactor, "atari_paper")
        self.assertEqual((config.agent.torso, config.agent.core), ("reactor", "lstm"))
        # The online network and the target network read 32 of them each.
        self.assertEqual((config.replay.steps_per_entry + 1, config.replay.batch_size), (33, 4))
        self.assertEqual((config.learner.optimizer, config.learner.adam_beta1), ("adam", 0))
        self.assertEqual(config.environment.no_op_max, 30)

    @parameterized.parameters("atari", "atari_paper", "minatar")
    def test_fresh_critic_of_reactor_predicts_zero(self, variant):
        # Its masses are nearly equal, so that it predicts the middle of the support.
        agent = reactor.get_config(variant).agent
        self.assertEqual(agent.v_min + agent.v_max, 0)

    @parameterized.parameters(
        (acer, "atari_paper"),
        (impala, "atari"),
        (laser, "atari_paper"),
        (laser, "dmlab30"),
        (r2d2, "dmlab30"),
        (sweeps, "atari_paper"),
    )
    def test_observations_of_papers_are_not_normalised(self, file, variant):
        agent = file.get_config(variant).agent
        self.assertEqual(agent.image_normalisation, "none")


if __name__ == "__main__":
    absltest.main()
