"""A Ray of a run's own that has too little, or does not start: without its processes."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from laser_tf.cluster import ray_session
from laser_tf.training import cluster_config

_HAS_NOT_STARTED = RuntimeError("the raylet has not started")


class OwnRayTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.enter_context(mock.patch.object(ray_session, "_FOLDERS", self._folder))
        self.enter_context(mock.patch.object(ray_session, "_make_token"))
        self._ray = self.enter_context(mock.patch.object(ray_session, "ray"))
        self._ray.cluster_resources.return_value = {"CPU": 4.0, "GPU": 2.0}

    def _enter(self, cpus: float, gpus: float) -> None:
        with ray_session.session(cluster_config.ClusterConfig(), cpus, gpus):
            self._ray.shutdown.assert_not_called()

    def test_a_machine_with_too_few_gpus_is_refused_and_ray_ended(self):
        with self.assertRaisesRegex(
            ray_session.ClusterError,
            "^the run asks for 256 GPUs, but this machine has 2: lower cluster.learner_gpus",
        ):
            self._enter(4.0, 256.0)
        self._ray.shutdown.assert_called_once_with()

    def test_one_with_enough_is_taken_and_leaves_nothing_behind(self):
        self._enter(4.0, 2.0)
        self._ray.shutdown.assert_called_once_with()
        self.assertEmpty(list(self._folder.iterdir()))

    def test_one_that_starts_at_its_last_attempt_is_taken(self):
        self._ray.init.side_effect = [_HAS_NOT_STARTED, _HAS_NOT_STARTED, None]
        with self.assertLogs(level="WARNING") as logs:
            with ray_session.session(cluster_config.ClusterConfig(), 4.0, 0.0):
                self.assertLen(self._ray.init.call_args_list, 3)
        self.assertLen(logs.output, 2)
        for line in logs.output:
            self.assertIn("Ray has not started (the raylet has not started): once more", line)

    def test_one_that_does_not_start_is_told_in_one_line_with_its_logs(self):
        self._ray.init.side_effect = _HAS_NOT_STARTED
        with (
            self.assertLogs(level="WARNING"),
            self.assertRaisesRegex(
                ray_session.ClusterError, "^cannot start Ray on this machine: .*; its logs are in "
            ),
        ):
            self._enter(4.0, 0.0)
        self.assertLen(list(self._folder.iterdir()), 1)


if __name__ == "__main__":
    absltest.main()
