"""Serial runs: two runs with one seed are equal."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.monitoring import episode_log
from testing import fakes, runs


class SerialTest(absltest.TestCase):
    def _train(self) -> tuple[str, list[np.ndarray]]:
        """Returns the episodes and the final variables of a run of 30 updates."""
        # An actor's unrolls are no multiple of a batch.
        config = fakes.catch_config(
            agent={"trust_region": "none"},
            environment={"num_envs": 6},
            replay={"scheme": "online", "batch_size": 4},
            run={"env_frames": 1_200, "serial": True},
        )
        workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())) / "run"
        run = runs.train(config, workdir)
        variables = [tf.convert_to_tensor(v).numpy() for v in run._learner.agent.variables]
        return (workdir / episode_log.FILE).read_text(), variables

    def test_equal_seeds_give_equal_runs(self):
        (first, variables), (second, same) = self._train(), self._train()
        self.assertEqual(first, second)
        self.assertGreater(first.count("\n"), 50)
        for one, other in zip(variables, same, strict=True):
            np.testing.assert_array_equal(one, other)


if __name__ == "__main__":
    absltest.main()
