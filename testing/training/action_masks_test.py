"""Runs on an environment with action masks: learning, evaluation and export."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from absl.testing import absltest

from configs import laser
from laser_tf.evaluation import run_evaluation
from laser_tf.export import act, exporter
from laser_tf.monitoring import episode_log
from laser_tf.training import run_config
from testing import fakes, folders, runs
from testing.environments import masked_doors

DOORS = "testing.environments.masked_doors:Doors-v0"


def _config(agent="laser", **environment):
    values = laser.get_config("gymnasium").to_dict()
    values["environment"] |= {"task": DOORS, "num_workers": 1} | environment
    if agent == "r2d2":
        r2d2 = fakes.config_values(
            fakes.r2d2_catch_config(agent={"core": "none"}, replay={"burn_in": 0})
        )
        values |= {section: r2d2[section] for section in ("agent", "replay", "learner")}
    values["run"].update(env_frames=10_000, evaluation_episodes=0)
    return run_config.parse(values)


class ActionMasksTest(folders.FolderTest):
    @pytest.mark.long
    def test_laser_without_masks_fails(self):
        run = runs.train(_config(arguments="masks=False"), self._workdir)
        self.assertLess(run.returns.mean_return(), 0.1)

    def test_masks_are_respected_in_training_evaluation_and_export(self):
        self._check("laser", env_frames=2_000, min_return=0.0)

    @pytest.mark.long
    def test_laser_learns_with_masks(self):
        self._check("laser")

    @pytest.mark.long
    def test_r2d2_respects_masks(self):
        self._check("r2d2")

    def _check(self, agent: str, env_frames: int = 10_000, min_return: float = 0.9) -> None:
        config = _config(agent)
        run = dataclasses.replace(config.run, env_frames=env_frames)
        runs.train(dataclasses.replace(config, run=run), self._workdir)
        # A forbidden action would shorten an episode.
        lengths = episode_log.read(self._workdir)[DOORS].lengths
        self.assertEqual(set(lengths.tolist()), {masked_doors.STEPS})
        summary = run_evaluation.evaluate(
            self._workdir, episodes=50, seed=2, video=False, greedy=True, trust_config=True
        )
        self.assertGreater(summary["mean_return"], min_return)  # 0.5 with random allowed actions
        exporter.export(self._workdir, self._folder / "policy", trust_config=True)
        policy = act.load(self._folder / "policy", DOORS)
        returns = act.run(policy, gymnasium.make("Doors-v0"), 20)
        self.assertGreater(np.mean(returns), min_return)


if __name__ == "__main__":
    absltest.main()
