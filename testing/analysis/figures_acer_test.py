"""ACER's figures: conditions are valid runs that differ in what the figure compares, or refused."""

import dataclasses
import types
from collections.abc import Mapping

from absl.testing import absltest, parameterized

from configs import acer_control, acer_minatar, laser_minatar
from laser_tf import errors
from laser_tf.analysis import figures_acer
from laser_tf.training import run_config
from testing import flag_values

MODULES = {"acer_1": acer_minatar, "acer_2": acer_control, "acer_3": acer_control}


def _runs(
    name: str, game: str, given: Mapping[str, object] = types.MappingProxyType({})
) -> dict[str, run_config.RunConfig]:
    runs = {}
    for condition in figures_acer.FIGURES[name].conditions:
        argument = (condition.argument,) if condition.argument else ()
        values = MODULES[name].get_config(*argument).to_dict()
        flags = given | condition.values(values, game, 2)
        runs[condition.label] = run_config.parse(flag_values.changed(values, flags))
    return runs


class FiguresAcerTest(parameterized.TestCase):
    @parameterized.parameters("acer_1", "acer_2", "acer_3")
    def test_all_runs_play_the_same_game_for_as_long_by_the_same_seeds(self, name):
        chosen = figures_acer.FIGURES[name]
        self.assertEqual(chosen.config, f"configs/{MODULES[name].__name__.split('.')[-1]}.py")
        figures_acer.check(name, MODULES[name].get_config().to_dict())
        for game in chosen.games:
            runs = _runs(name, game)
            self.assertLen(set(runs.values()), len(chosen.conditions))
            for run in runs.values():
                self.assertEqual((run.environment.task, run.run.seed), (game, 1_001))
                self.assertLen({(run.environment, run.run, run.replay.unroll_length)
                                for run in runs.values()}, 1)  # fmt: skip

    def test_replay_ratios_with_and_without_the_trust_region(self):
        runs = _runs("acer_1", "breakout")
        self.assertEqual(
            {
                label: (run.replay.replay_ratio, run.agent.trust_region)
                for label, run in runs.items()
            },
            {
                f"replay ratio {ratio}{label}": (ratio, trust)
                for ratio in (0, 1, 4)
                for label, trust in ((", trust region", True), ("", False))
            },
        )

    def test_methods_of_continuous_control(self):
        runs = _runs("acer_2", "cheetah/run")
        self.assertEqual(
            {label: (run.agent.kind, run.agent.trust_region) for label, run in runs.items()},
            {
                "ACER": ("acer", True),
                "Trust-TIS": ("a3c", True),
                "TIS": ("a3c", False),
                "Trust-A3C": ("a3c", True),
                "A3C": ("a3c", False),
            },
        )
        self.assertLen({run.learner for run in runs.values()}, 1)
        for label, run in runs.items():
            if label == "ACER":
                replay = run.replay
            elif "TIS" in label:
                self.assertEqual((run.agent.importance, run.replay), ("truncated", replay))
            else:
                self.assertEqual((run.agent.importance, run.replay.replay_table), ("none", None))

    def test_a3c_replays_nothing_whatever_the_user_says(self):
        for given in ({"replay.replay_fraction": 0.5}, {"replay.steps_per_update": 40}):
            runs = _runs("acer_2", "cheetah/run", given)
            for label in ("A3C", "Trust-A3C"):
                self.assertIsNone(runs[label].replay.replay_table)

    def test_parts_are_removed_one_at_a_time(self):
        runs = _runs("acer_3", "cheetah/run")
        whole = runs.pop("ACER")
        for label, key in (
            ("no Retrace", "lambda_"),
            ("no SDN", "dueling_samples"),
            ("no truncation", "truncation"),
            ("no trust region", "trust_region"),
        ):
            run = runs[label]
            self.assertNotEqual(getattr(run.agent, key), getattr(whole.agent, key))
            restored = dataclasses.replace(run.agent, **{key: getattr(whole.agent, key)})
            self.assertEqual(dataclasses.replace(run, agent=restored), whole)

    def test_what_cannot_be_compared_is_refused(self):
        config = acer_minatar.get_config().to_dict()
        config["replay"]["steps_per_update"] = 100
        with self.assertRaisesRegex(errors.UserError, "steps_per_update is 100.*: use 0"):
            figures_acer.check("acer_1", config)
        with self.assertRaisesRegex(errors.UserError, "not laser: use.*configs/acer_control.py"):
            figures_acer.check("acer_3", laser_minatar.get_config().to_dict())


if __name__ == "__main__":
    absltest.main()
