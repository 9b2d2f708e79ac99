"""Serial runs: two runs with one seed are equal."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.monitoring import episode_log
from laser_tf.training import run_config
from testing import fakes, folders, runs


class SerialTest(folders.FolderTest):
    def _check(self, config: run_config.RunConfig) -> None:
        """Trains twice and compares episodes and final variables."""
        (first, variables), (second, same) = self._train(config), self._train(config)
        self.assertEqual(first, second)
        self.assertGreater(first.count("\n"), 50)
        for one, other in zip(variables, same, strict=True):
            np.testing.assert_array_equal(one, other)

    def _train(self, config: run_config.RunConfig) -> tuple[str, list[np.ndarray]]:
        """Returns the episodes and the final variables of a run."""
        run = runs.train(config, self._workdir)
        variables = [tf.convert_to_tensor(v).numpy() for v in run._learner.agent.variables]
        return (self._workdir / episode_log.FILE).read_text(), variables

    def test_equal_seeds_give_equal_runs(self):
        # An actor's unrolls are no multiple of a batch.
        config = fakes.catch_config(
            agent={"trust_region": "none"},
            environment={"num_envs": 6},
            replay={"scheme": "online", "batch_size": 4},
            run={"env_frames": 1_200, "serial": True},
        )
        self._check(config)

    def test_equal_seeds_give_equal_runs_of_reactor(self):
        # A turn of the actor, 24 steps, is no multiple of an update, and fills the queues.
        config = fakes.reactor_catch_config(
            environment={"num_envs": 6},
            replay={
                "scheme": "contextual",
                "batch_size": 4,
                "unroll_length": 4,
                "sequence_length": 8,
                "sequence_overlap": 4,
                "steps_per_update": 20,
                "warm_up": 200,
                "queue_capacity": 2,
            },
            run={"env_frames": 600, "serial": True},
        )
        self._check(config)


if __name__ == "__main__":
    absltest.main()
