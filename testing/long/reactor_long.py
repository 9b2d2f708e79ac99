"""Reactor learns with cores, and without distributions, as without and with in `training_test`."""

import pathlib
import tempfile

from absl.testing import absltest, parameterized

from laser_tf.evaluation import evaluator
from testing import fakes, runs


class VariantsTest(parameterized.TestCase):
    @parameterized.named_parameters(
        ("recurrent", {"core": "lstm"}, 30_000),
        ("without_distributions", {"core": "none", "distributional": False}, 20_000),
    )
    def test_it_learns_catch(self, agent, env_frames):
        config = fakes.reactor_catch_config(agent=agent, run={"env_frames": env_frames})
        workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())) / "run"
        runs.train(config, workdir)
        summary = evaluator.evaluate(workdir, episodes=50, seed=2, video=False)
        self.assertGreater(summary["mean_return"], 0.7)


if __name__ == "__main__":
    absltest.main()
