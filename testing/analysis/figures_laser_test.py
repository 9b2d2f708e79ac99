"""LASER's figures: conditions are valid sweeps that differ in what the figure compares."""

from absl.testing import absltest, parameterized

from configs import sweep_laser_atari, sweep_laser_minatar, sweep_laser_minatar_multitask
from laser_tf.analysis import figure, figures_laser
from laser_tf.sweeps import sweep_config
from testing import flag_values


def _sweep(config: dict, condition: figure.Condition, game: str) -> sweep_config.SweepConfig:
    return sweep_config.parse(flag_values.changed(config, condition.values(config, game, 2)))


class FiguresLaserTest(parameterized.TestCase):
    @parameterized.product(
        name=list(figures_laser.FIGURES),
        config_and_game=[(sweep_laser_minatar, "breakout"), (sweep_laser_atari, "pong")],
    )
    def test_every_curve_is_a_sweep_with_equally_many_updates(self, name, config_and_game):
        module, game = config_and_game
        config = module.get_config().to_dict()
        sweeps = [_sweep(config, c, game) for c in figures_laser.FIGURES[name].conditions]
        self.assertLen({sweep.first.replay.fresh_steps_per_update for sweep in sweeps}, 1)
        self.assertLen({sweep.sweep.label for sweep in sweeps}, len(sweeps))
        for sweep in sweeps:
            self.assertEqual(sweep.first.environment.task, game)
            self.assertEqual(sweep.first.run.seed, 1_001)

    def test_what_figure_3_compares(self):
        config = sweep_laser_minatar.get_config().to_dict()
        none, naive, trusted = (
            _sweep(config, c, "breakout") for c in figures_laser.FIGURES["3_left"].conditions
        )
        self.assertEqual(none.first.replay.replay_entries, 0)
        self.assertEqual([s.sweep.shared_replay for s in (naive, trusted)], [True, True])
        self.assertEqual(naive.first.replay, trusted.first.replay)
        self.assertEqual([s.first.agent.relevance for s in (naive, trusted)], ["none", "implied"])

    def test_the_agents_of_the_multitask_figure_share_or_not(self):
        config = sweep_laser_minatar_multitask.get_config().to_dict()
        none, own, naive, *trusted = (
            _sweep(config, c, "all") for c in figures_laser.FIGURES["3_multitask"].conditions
        )
        self.assertEqual(none.first.replay.replay_entries, 0)
        self.assertEqual(own.first, naive.first)
        self.assertEqual([s.sweep.shared_replay for s in (own, naive)], [False, True])
        self.assertEqual([s.first.agent.kl_threshold for s in trusted], [0.1, 0.03])
        for sweep in (none, own, naive):
            self.assertEqual(sweep.first.agent.relevance, "none")
        for sweep in trusted:
            self.assertTrue(sweep.sweep.shared_replay)
            self.assertEqual(sweep.first.agent.relevance, "implied")
        for sweep in (own, naive, *trusted):
            self.assertEqual(len(sweep.agents), 10)
            self.assertEqual(sweep.hyperparameters, naive.hyperparameters)
            self.assertEqual(sweep.first.replay.replay_fraction, 0.875)


if __name__ == "__main__":
    absltest.main()
