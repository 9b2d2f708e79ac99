"""Tests of learning from vectors with the configs of users."""

import pathlib
import tempfile

import pytest
from absl.testing import absltest, parameterized

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


class VectorsTest(parameterized.TestCase):
    @pytest.mark.long
    def test_laser_learns_cart_pole(self):
        config = laser.get_config("gymnasium")
        config.run.env_frames = 20_000
        self.assertGreater(_mean_return(config), 40)  # at random: 22

    @pytest.mark.long
    def test_laser_learns_continuous_actions(self):
        config = laser.get_config("control")
        config.environment.suite = "dm_env"
        config.environment.task = "testing.environments.small_target:Target"
        config.run.env_frames = 40_000
        # At random -2.5 an episode of 5 steps, in the middle of the bounds -2.
        self.assertGreater(_mean_return(config), -1.6)

    def test_laser_learns_several_integers(self):
        # At random 1.5 in an episode of 5 steps; the best return is 5.
        self._check_parts(level=False, env_frames=5_000, min_return=2.3)

    @pytest.mark.long
    def test_laser_learns_integers_and_floats(self):
        # At random -1.5. At most 3 if the number does not depend on the state.
        self._check_parts(level=True, env_frames=20_000, min_return=3.2)

    def _check_parts(self, *, level: bool, env_frames: int, min_return: float) -> None:
        config = laser.get_config("gymnasium")
        config.agent.discount = 0.9
        config.environment.task = "testing.environments.small_environments:Dials-v0"
        config.environment.arguments = f"{level=}"
        config.run.env_frames = env_frames
        self.assertGreater(_mean_return(config), min_return)

    @pytest.mark.long
    def test_acer_learns_continuous_actions(self):
        config = acer.get_config("control")
        config.environment.suite = "dm_env"
        config.environment.task = "testing.environments.small_point:Point"
        config.replay.warm_up = 500
        config.run.env_frames = 14_000
        self.assertGreater(_mean_return(config), 0.5 * small_point.BEST_RETURN)  # at random: 0


if __name__ == "__main__":
    absltest.main()
