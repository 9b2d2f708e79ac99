"""R2D2's feed-forward variant learns, as the recurrent one in `training_test`."""

import pathlib
import tempfile

from absl.testing import absltest

from laser_tf.evaluation import evaluator
from testing import fakes, runs


class FeedForwardTest(absltest.TestCase):
    def test_it_learns_catch(self):
        config = fakes.r2d2_catch_config(
            agent={"core": "none"}, replay={"burn_in": 0}, run={"env_frames": 30_000}
        )
        workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())) / "run"
        runs.train(config, workdir)
        summary = evaluator.evaluate(workdir, episodes=50, seed=2, video=False)
        self.assertGreater(summary["mean_return"], 0.8)


if __name__ == "__main__":
    absltest.main()
