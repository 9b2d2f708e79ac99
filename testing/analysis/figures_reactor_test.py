"""Reactor's figure: conditions are valid runs that differ in what it compares, or refused."""

import dataclasses

from absl.testing import absltest

from configs import r2d2_minatar, reactor_minatar
from laser_tf import errors
from laser_tf.analysis import figures_reactor
from laser_tf.training import run_config
from testing import flag_values


def _runs(game: str) -> dict[str, run_config.RunConfig]:
    runs = {}
    for condition in figures_reactor.FIGURES["reactor_3"].conditions:
        values = reactor_minatar.get_config().to_dict()
        flags = condition.values(values, game, 2)
        runs[condition.label] = run_config.parse(flag_values.changed(values, flags))
    return runs


class FiguresReactorTest(absltest.TestCase):
    def test_parts_are_removed_one_at_a_time(self):
        chosen = figures_reactor.FIGURES["reactor_3"]
        self.assertEqual(chosen.config, f"configs/{reactor_minatar.__name__.split('.')[-1]}.py")
        figures_reactor.check("reactor_3", reactor_minatar.get_config().to_dict())
        for game in chosen.games:
            runs = _runs(game)
            whole = runs.pop("Reactor")
            self.assertEqual((whole.environment.task, whole.run.seed), (game, 1_001))
            self.assertEqual(whole.run.evaluation_episodes, 0)
            for label, section, values in (
                ("no distributional Retrace", "agent", {"distributional": False}),
                ("TISLR for beta-LOO", "agent", {"policy_gradient": "tislr", "truncation": 10.0}),
                (
                    "no prioritisation",
                    "replay",
                    {"priorities": "proportional", "priority_exponent": 0.0},
                ),
            ):
                run, part = runs.pop(label), getattr(whole, section)
                for key, value in values.items():
                    self.assertNotEqual(getattr(part, key), value)
                changed = dataclasses.replace(part, **values)
                self.assertEqual(run, dataclasses.replace(whole, **{section: changed}))
            self.assertEmpty(runs)

    def test_the_whole_agent_is_whole_whatever_the_configuration_leaves_out(self):
        values = reactor_minatar.get_config().to_dict()
        values["agent"].update(distributional=False, policy_gradient="loo")
        first = figures_reactor.FIGURES["reactor_3"].conditions[0].values(values, "breakout", 1)
        self.assertEqual(
            (first["agent.distributional"], first["agent.policy_gradient"]), (True, "beta_loo")
        )

    def test_what_cannot_be_compared_is_refused(self):
        config = reactor_minatar.get_config().to_dict()
        config["replay"]["priority_exponent"] = 0.0
        with self.assertRaisesRegex(errors.UserError, "priority_exponent is 0, which is uniform"):
            figures_reactor.check("reactor_3", config)
        with self.assertRaisesRegex(errors.UserError, "not r2d2: use.*configs/reactor_minatar.py"):
            figures_reactor.check("reactor_3", r2d2_minatar.get_config().to_dict())


if __name__ == "__main__":
    absltest.main()
