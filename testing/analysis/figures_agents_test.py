"""The figure of all agents: each by its own configuration, on the same games, for as long."""

import importlib

from absl.testing import absltest

from configs import laser_minatar
from laser_tf.analysis import figures_agents
from laser_tf.training import run_config
from testing import flag_values

CHOSEN = figures_agents.FIGURES["agents"]


def _runs(base: dict, game: str, replica: int) -> dict[str, run_config.RunConfig]:
    runs = {}
    for condition in CHOSEN.conditions:
        name = condition.config.removesuffix(".py").replace("/", ".")
        values = importlib.import_module(name).get_config().to_dict()
        flags = condition.values(base, game, replica)
        runs[condition.label] = run_config.parse(flag_values.changed(values, flags))
    return runs


class FiguresAgentsTest(absltest.TestCase):
    def test_all_play_the_same_game_for_as_long_by_the_same_seeds(self):
        base = laser_minatar.get_config().to_dict()
        base["run"]["env_frames"] = 12_345
        self.assertEqual(CHOSEN.config, "configs/laser_minatar.py")
        for game in CHOSEN.games:
            runs = _runs(base, game, 2)
            self.assertEqual(list(runs), ["LASER", "IMPALA", "ACER", "R2D2", "Reactor"])
            for label, run in runs.items():
                self.assertEqual((run.run.env_frames, run.run.seed), (12_345, 1_001), label)
                self.assertEqual(run.run.evaluation_episodes, 0, label)
                self.assertEqual(run.environment.suite, "minatar", label)
                self.assertEqual(run.environment.task, game, label)
                self.assertEqual(run.environment.sticky_actions, 0.1, label)
            kinds = {label: run.agent.kind for label, run in runs.items()}
            self.assertEqual(kinds, {"LASER": "laser", "IMPALA": "laser", "ACER": "acer",
                                     "R2D2": "r2d2", "Reactor": "reactor"})  # fmt: skip
            self.assertIsNotNone(runs["LASER"].replay.replay_table)
            self.assertIsNone(runs["IMPALA"].replay.replay_table)


if __name__ == "__main__":
    absltest.main()
