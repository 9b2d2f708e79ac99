"""Configurations that bear a paper's name hold that paper's numbers."""

from absl.testing import absltest, parameterized

from configs import acer, impala, laser, r2d2, reactor, sweeps
from laser_tf.ops import reward_clipping
from laser_tf.replay.schemes import episodes
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config


def _rows(replay):
    """Online and replayed unrolls of a batch."""
    return replay.online_entries, replay.replayed_entries


class LaserOnAtariTest(absltest.TestCase):
    def test_the_single_agent_has_its_ratio_its_schedule_and_its_replay(self):
        # LASER, section 5.1: "the same tuned schedule as Espeholt et al., a 87.5% replay ratio and
        # a 15M replay".
        config = run_config.parse(laser.get_config("atari_paper").to_dict())
        self.assertEqual(_rows(config.replay), (32, 224))
        self.assertEqual(config.replay.replay_fraction, 0.875)
        self.assertEqual(config.replay.capacity, 15_000_000)
        self.assertEqual(config.learner.learning_rate, 6e-4)
        self.assertEqual(config.learner.learning_rate_schedule, "linear")

    def test_the_sweep_has_nine_constant_agents_and_its_batches(self):
        config = sweep_config.parse(sweeps.get_config("atari_paper").to_dict())
        self.assertLen(config.members, 9)
        tuned = {
            (agent.learner.learning_rate, agent.agent.entropy_cost)
            for agent in config.members.values()
        }
        rates, costs = (3e-4, 6e-4, 1.2e-3), (5e-3, 1e-2, 2e-2)
        self.assertEqual(tuned, {(rate, cost) for rate in rates for cost in costs})
        for agent in config.members.values():
            self.assertEqual(_rows(agent.replay), (32, 128))
            self.assertEqual(agent.learner.learning_rate_schedule, "constant")

    def test_both_have_section_5_1s_network_unrolls_and_discount(self):
        for config in (laser.get_config("atari_paper"), sweeps.get_config("atari_paper")):
            self.assertEqual((config.agent.torso, config.agent.channel_multiplier), ("deep", 4))
            self.assertEqual((config.replay.unroll_length, config.agent.discount), (19, 0.995))
            self.assertEqual((config.learner.gradient_clip, config.environment.no_op_max), (0, 37))


class AcerTest(absltest.TestCase):
    def test_discrete_numbers_are_those_of_section_4(self):
        for config in (acer.get_config("atari"), acer.get_config("atari_paper")):
            config = run_config.parse(config.to_dict())
            agent, replay = config.agent, config.replay
            self.assertEqual((agent.discount, agent.entropy_cost), (0.99, 0.001))
            self.assertEqual((agent.truncation, agent.delta, agent.average_decay), (10, 1, 0.99))
            self.assertEqual((replay.unroll_length, replay.replay_ratio), (20, 4))
            self.assertEqual(config.learner.learning_rate_schedule, "constant")
        self.assertEqual((agent.torso, agent.center_observation), ("nature", False))
        self.assertEqual((config.environment.num_envs, replay.capacity), (16, 16 * 50_000))

    def test_continuous_numbers_are_those_of_section_6(self):
        config = run_config.parse(acer.get_config("control").to_dict())
        agent, replay = config.agent, config.replay
        self.assertEqual((agent.discount, agent.truncation), (0.99, 5))
        self.assertEqual((agent.average_decay, agent.policy_std), (0.995, 0.3))
        self.assertEqual(agent.dueling_samples, 5)
        drawn = replay.batch_size * replay.unroll_length
        self.assertEqual(drawn / replay.steps_per_update, 8)  # times on average; ours


class ReactorTest(absltest.TestCase):
    def test_numbers_are_those_of_section_3_section_4_and_table_3(self):
        config = run_config.parse(reactor.get_config("atari_paper").to_dict())
        agent, replay, optimiser = config.agent, config.replay, config.learner
        self.assertEqual((agent.torso, agent.core, agent.core_size), ("reactor", "lstm", 128))
        self.assertEqual((agent.hidden_units, agent.uniform_share), (32, 0.01))
        self.assertEqual((agent.target_period, agent.lambda_), (1_000, 1))
        self.assertEqual((agent.policy_gradient, agent.truncation), ("beta_loo", 1))
        # 33 frames, of which the online network reads 32 and the target network 32.
        self.assertEqual((replay.steps_per_entry + 1, replay.batch_size), (33, 4))
        self.assertBetween(replay.steps_per_update, 4, 6)
        self.assertEqual((replay.priority_exponent, replay.importance_exponent), (1, 1))
        self.assertEqual(replay.scheme, "contextual")
        self.assertEqual(replay.frame_stack, 1)
        self.assertEqual((optimiser.optimizer, optimiser.learning_rate), ("adam", 5e-5))
        self.assertEqual(optimiser.adam_beta1, 0)  # no momentum
        self.assertEqual((config.environment.num_envs, config.environment.no_op_max), (10, 30))
        self.assertEqual((config.run.env_frames, config.run.evaluation_episodes), (2e8, 200))

    def test_a_fresh_critic_expects_nothing(self):
        # Its masses are nearly equal, so that it says the middle of the support. What is above the
        # returns of play takes as many target networks to go away as there are steps to an end.
        for config in (
            reactor.get_config("atari"),
            reactor.get_config("atari_paper"),
            reactor.get_config("minatar"),
        ):
            agent = config.agent
            self.assertEqual(agent.v_min + agent.v_max, 0)


class PaperTest(parameterized.TestCase):
    @parameterized.parameters(
        (impala, "atari"),
        (laser, "atari_paper"),
        (laser, "dmlab30"),
        (r2d2, "dmlab30"),
        (sweeps, "atari_paper"),
    )
    def test_observations_are_as_the_papers_have_them(self, file, variant):
        self.assertTrue(laser.get_config("atari").agent.normalise_images)  # what is inherited
        agent = file.get_config(variant).agent
        self.assertFalse(agent.center_observation or agent.normalise_images)

    def test_dmlabs_batches_are_those_of_the_text(self):
        scheme = episodes.Episodes(**laser.get_config("dmlab30").replay)
        self.assertEqual(_rows(scheme), (32, 128))

    def test_dmlabs_clip_is_that_of_the_published_code(self):
        clip = reward_clipping.REWARD_CLIPS[r2d2.get_config("dmlab30").agent.reward_clip]
        self.assertIs(clip, reward_clipping.soft_asymmetric)


if __name__ == "__main__":
    absltest.main()
