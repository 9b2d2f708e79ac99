"""The sharing figure: conditions are valid sweeps that differ in what the figure compares."""

import dataclasses

from absl.testing import absltest, parameterized

from configs import (
    sweep_laser_catch,
    sweep_laser_minatar,
    sweep_laser_minatar_multitask,
    sweep_laser_vizdoom,
)
from laser_tf import config_values, errors
from laser_tf.analysis import figures_sharing
from laser_tf.sweeps import sweep_config
from testing import flag_values

FIGURE = figures_sharing.FIGURES[figures_sharing.CATCH]


def _sweeps() -> dict[str, sweep_config.SweepConfig]:
    config = sweep_laser_catch.get_config("companions").to_dict()
    sweeps = {}
    for condition in FIGURE.conditions:
        flags = condition.values(config, "catch", 2)
        sweeps[condition.label] = sweep_config.parse(flag_values.changed(config, flags))
    return sweeps


class FiguresSharingTest(parameterized.TestCase):
    def test_two_normal_agents_and_eight_that_collapse_in_ten_conditions(self):
        sweeps = _sweeps()
        self.assertLen(sweeps, 10)
        for sweep in sweeps.values():
            rates = [agent.learner.learning_rate for agent in sweep.agents.values()]
            self.assertEqual((len(rates), rates.count(min(rates))), (10, 2))
            self.assertEqual(sweep.first.replay.replay_entries, 14)  # of 16: 87.5%

    def test_the_conditions_differ_in_sharing_the_trust_region_and_the_offset_alone(self):
        compared = {
            "agent.relevance", "agent.kl_threshold", "environment.reward_offset",
        }  # fmt: skip
        sweeps = _sweeps()
        rest = [
            {k: v for k, v in _flat(sweep.first).items() if k not in compared}
            for sweep in sweeps.values()
        ]
        self.assertTrue(all(values == rest[0] for values in rest))
        agent = {label: sweep.first.agent for label, sweep in sweeps.items()}
        for ending, offset in (("", 0.0), (", +1 a step", 1.0)):
            own, naive = sweeps["a replay each" + ending], sweeps["naive sharing" + ending]
            self.assertEqual([s.sweep.shared_replay for s in (own, naive)], [False, True])
            self.assertEqual(own.first, naive.first)
            self.assertEqual(naive.first.agent.relevance, "none")
            self.assertEqual(naive.first.environment.reward_offset, offset)
            for b in (0.3, 0.1, 0.03):
                trusting = agent[f"sharing, b = {b}{ending}"]
                self.assertEqual((trusting.relevance, trusting.kl_threshold), ("implied", b))

    def test_replay_holds_all_that_agents_live_through(self):
        for sweep in _sweeps().values():
            steps = sum(agent.total_agent_steps for agent in sweep.agents.values())
            self.assertGreaterEqual(sweep.first.replay.capacity, steps)

    @parameterized.parameters(
        (sweep_laser_minatar, {}, "not in minatar: use e.g. .*sweep_laser_catch.py:companions"),
        (sweep_laser_catch, {"reward_clip": "unit"}, "reward_clip is 'unit', .*: use 'none'"),
        (sweep_laser_catch, {"kind": "impala"}, "variants of laser, not impala"),
        (sweep_laser_minatar_multitask, {}, "compares agents of one task, not of .*: name one"),
    )
    def test_a_configuration_that_it_cannot_compare_is_refused(self, module, agent, message):
        config = module.get_config().to_dict()
        config["agent"].update(agent)
        with self.assertRaisesRegex(errors.UserError, f"^--figure=sharing.*{message}"):
            figures_sharing.check(figures_sharing.CATCH, config)

    def test_agents_that_are_not_told_apart_are_refused(self):
        config = sweep_laser_catch.get_config("companions").to_dict()
        figures_sharing.check(figures_sharing.CATCH, config)
        for grid, rates in (
            ({"agent": {"entropy_cost": (0.1, 0.2)}}, r"\(\)"),
            ({"learner": {"learning_rate": (0.1, 0.1)}}, r"\(0.1, 0.1\)"),
        ):
            config["sweep"]["grid"] = grid
            with self.assertRaisesRegex(errors.UserError, f"learning_rate is {rates}, but normal"):
                figures_sharing.check(figures_sharing.CATCH, config)


class VizDoomTest(absltest.TestCase):
    def test_two_normal_agents_and_four_that_get_stuck_in_five_conditions(self):
        config = sweep_laser_vizdoom.get_config().to_dict()
        figures_sharing.check(figures_sharing.VIZDOOM, config)
        found = []
        for condition in figures_sharing.FIGURES[figures_sharing.VIZDOOM].conditions:
            values = condition.values(config, "health_gathering", 1)
            sweep = sweep_config.parse(flag_values.changed(config, values))
            settings = [
                (agent.learner.learning_rate, agent.agent.entropy_cost)
                for agent in sweep.agents.values()
            ]
            self.assertEqual(settings, [(6e-4, 0.01)] * 2 + [(1e-2, 1e-4)] * 4)
            self.assertEqual(sweep.first.replay.replay_entries, 14)  # of 16: 87.5%
            steps = sum(agent.total_agent_steps for agent in sweep.agents.values())
            # An episode's last unroll takes the room of a whole one: of 100 steps that of 128.
            self.assertGreater(sweep.first.replay.capacity, 1.28 * steps)
            agent = sweep.first.agent
            bound = agent.kl_threshold if agent.relevance == "implied" else None
            found.append((sweep.sweep.shared_replay, bound))
        self.assertEqual(found, [(False, None), *((True, b) for b in (None, 0.3, 0.1, 0.03))])

    def test_agents_that_are_not_told_apart_are_refused(self):
        config = sweep_laser_vizdoom.get_config().to_dict()
        config["sweep"]["zipped"]["learner"]["learning_rate"] = (1e-3,) * 6
        with self.assertRaisesRegex(errors.UserError, "=sharing_vizdoom: the sweep's learner.lea"):
            figures_sharing.check(figures_sharing.VIZDOOM, config)

    def test_another_scenario_is_refused(self):
        config = sweep_laser_vizdoom.get_config().to_dict()
        config["environment"]["task"] = "my_way_home"
        with self.assertRaisesRegex(errors.UserError, "not vizdoom's my_way_home: leave the task"):
            figures_sharing.check(figures_sharing.VIZDOOM, config)


def _flat(config) -> dict:
    return config_values.flatten(dataclasses.asdict(config))


if __name__ == "__main__":
    absltest.main()
