"""R2D2's figures: conditions are valid runs that differ in what the figure compares, or refused."""

import dataclasses

from absl.testing import absltest, parameterized

from configs import impala_minatar, r2d2_minatar, r2d2_tmaze
from laser_tf import errors
from laser_tf.analysis import figures_r2d2
from laser_tf.training import run_config
from testing import flag_values


def _runs(name: str, config: dict, game: str) -> dict[str, run_config.RunConfig]:
    runs = {}
    for condition in figures_r2d2.FIGURES[name].conditions:
        flags = condition.values(config, game, 2)
        runs[condition.label] = run_config.parse(flag_values.changed(config, flags))
    return runs


class FiguresR2D2Test(parameterized.TestCase):
    @parameterized.parameters(
        (
            "r2d2_1",
            r2d2_minatar,
            "breakout",
            {
                "zero state": ("zero", 0),
                "burn-in": ("zero", 20),
                "stored state": ("stored", 0),
                "stored state, burn-in": ("stored", 20),
            },
        ),
        ("r2d2_5", r2d2_tmaze, "tmaze", {"zero state": ("zero", 0), "stored state": ("stored", 0)}),
    )
    def test_runs_differ_in_their_training_strategy_alone(self, name, module, game, expected):
        config = module.get_config().to_dict()
        figures_r2d2.check(name, config)
        runs = _runs(name, config, game)
        strategies = {
            label: (run.replay.core_state, run.replay.burn_in) for label, run in runs.items()
        }
        self.assertEqual(strategies, expected)
        rest = {
            dataclasses.replace(
                run, replay=dataclasses.replace(run.replay, core_state="zero", burn_in=0)
            )
            for run in runs.values()
        }
        self.assertLen(rest, 1)
        for run in runs.values():
            self.assertEqual(run.environment.task, game)
            self.assertEqual((run.run.seed, run.run.evaluation_episodes), (1_001, 0))

    @parameterized.parameters(
        ("r2d2_1", {"replay.burn_in": 0}, "compares a burn-in with none"),
        ("r2d2_1", {"agent.core": "none"}, "compares agents with a memory"),
        ("r2d2_5", {"run.evaluation_episodes": 0}, "is of evaluations"),
    )
    def test_what_cannot_be_compared_is_refused(self, name, overrides, message):
        config = r2d2_minatar.get_config()
        config.update_from_flattened_dict(overrides)
        with self.assertRaisesRegex(errors.UserError, message):
            figures_r2d2.check(name, config.to_dict())

    def test_another_agent_is_refused(self):
        with self.assertRaisesRegex(errors.UserError, "not laser: use.*r2d2_tmaze"):
            figures_r2d2.check("r2d2_5", impala_minatar.get_config().to_dict())


if __name__ == "__main__":
    absltest.main()
