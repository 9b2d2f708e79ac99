"""Tests of the compatibility of a run with the tables of a replay server."""

import dataclasses
import pathlib
import tempfile

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.replay import client, compatibility, server
from laser_tf.replay.schemes import base, episodes, mixed, replay_only
from testing import fakes, messages

T = 5
SPEC = fakes.image_spec((4, 3, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=T, frame_stack=2)
CONFIG = mixed.Mixed(unroll_length=T, frame_stack=2, batch_size=4, priority_exponent=0.5)
ADDRESS = "localhost:1"


class CompatibilityTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        directory = self.enter_context(tempfile.TemporaryDirectory())
        self._server = server.ReplayServer(CONFIG, SIGNATURE, pathlib.Path(directory) / "replay")
        self.addCleanup(self._server.stop)

    def _check(self, config=CONFIG, signature=SIGNATURE, queue=base.QUEUE) -> None:
        checked = compatibility.Compatibility(config, queue)
        checked.require(signature)
        for _ in range(2):  # The second check does not decode signatures.
            checked.check(self._server.tables(), ADDRESS)

    def test_same_tables_pass(self):
        self._check()

    def test_missing_queue_is_rejected(self):
        with messages.raises(errors.ConfigError, ADDRESS, "'other'", "'queue'"):
            self._check(queue="other")
        with messages.raises(errors.ConfigError, ADDRESS, "'other'"):
            compatibility.Compatibility(CONFIG, "other").check(self._server.tables(), ADDRESS)

    def test_missing_replay_table_is_rejected(self):
        config = episodes.Episodes(unroll_length=T, frame_stack=2, batch_size=4)
        with messages.raises(errors.ConfigError, ADDRESS, "'episodes'"):
            self._check(config)

    def test_other_unrolls_are_rejected(self):
        other = fakes.signature(SPEC, (), unroll_length=T + 1, frame_stack=2)
        with messages.raises(errors.ConfigError, ADDRESS):
            self._check(signature=other)

    @parameterized.parameters(0.0, 0.9)
    def test_other_priority_exponent_is_rejected(self, exponent):
        config = dataclasses.replace(CONFIG, priority_exponent=exponent)
        remedy = "--config.replay.priority_exponent=0.5"
        with messages.raises(errors.ConfigError, ADDRESS, f"{exponent:g}", remedy):
            self._check(config)

    def test_learner_of_a_server_saves_and_stops_it(self):
        replay = client.LearnerReplay(self._server.connect(), self._server)
        replay.checkpoint()
        self.assertIsNotNone(self._server.newest_checkpoint())
        replay.stop()

    def test_learner_of_another_process_leaves_the_server_as_it_is(self):
        replay = client.LearnerReplay(self._server.connect())
        replay.checkpoint()
        replay.stop()
        self.assertIsNone(self._server.newest_checkpoint())
        self.assertEqual(self._server.connect().size(), 0)
        self.assertEqual(
            self._server.fill_levels(), {"replay/queue_fill": 0, "replay/replay_fill": 0}
        )


class CapacityTest(absltest.TestCase):
    def test_capacity_below_the_warm_up_is_rejected(self):
        config = replay_only.ReplayOnly(
            unroll_length=T, batch_size=4, steps_per_update=20 * T, warm_up=81 * T, capacity=100 * T
        )
        config.check_server(81)
        with messages.raises(errors.ConfigError, 405, "--config.replay.warm_up=400"):
            config.check_server(80)


if __name__ == "__main__":
    absltest.main()
