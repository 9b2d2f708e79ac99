"""Tests of learning from vectors with the configs of users."""

import pathlib
import tempfile

import pytest
from absl.testing import absltest

from configs import acer, laser
from laser_tf.training import run_config
from testing import runs
from testing.environments import small_point


def _mean_return(config) -> float:
    """Of the last 100 episodes of a short run."""
    config.environment.num_workers = 1
    with tempfile.TemporaryDirectory() as folder:
        run = runs.train(run_config.parse(config.to_dict()), pathlib.Path(folder) / "run")
        return run.returns.mean_return()


class VectorsTest(absltest.TestCase):
    @pytest.mark.long
    def test_laser_learns_cart_pole(self):
        config = laser.get_config("gymnasium")
        config.run.env_frames = 20_000
        self.assertGreater(_mean_return(config), 40)  # at random: 22

    def test_laser_learns_continuous_actions(self):
        config = laser.get_config("control")
        config.environment.suite = "dm_env"
        config.environment.task = "testing.environments.small_target:Target"
        config.run.env_frames = 20_000
        # At random -2.5 an episode of 5 steps, in the middle of the bounds -2.
        self.assertGreater(_mean_return(config), -1.6)

    def test_laser_learns_actions_of_several_parts(self):
        config = laser.get_config("gymnasium")
        config.agent.trust_region = "behaviour"
        config.environment.task = "testing.environments.small_environments:Dials-v0"
        config.run.env_frames = 10_000
        # At random 1.5 in an episode of 5 steps, and 5 if both categories are always right.
        self.assertGreater(_mean_return(config), 3.5)
        config.environment.arguments = "level=True"
        # At random -1.1, and 3.6 - 5/2 in the middle of the bounds.
        self.assertGreater(_mean_return(config), 2.5)

    def test_acer_learns_continuous_actions(self):
        config = acer.get_config("control")
        config.environment.suite = "dm_env"
        config.environment.task = "testing.environments.small_point:Point"
        config.replay.warm_up = 500
        config.run.env_frames = 14_000
        self.assertGreater(_mean_return(config), 0.5 * small_point.BEST_RETURN)  # at random: 0


if __name__ == "__main__":
    absltest.main()
