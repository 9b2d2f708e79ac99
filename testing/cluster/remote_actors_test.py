"""The replay that a learner of remote actors samples from, and its weights, without Ray."""

import pathlib
import tempfile
from unittest import mock

import ray
import tensorflow as tf
from absl.testing import absltest

from laser_tf.cluster import remote_actors, replay_role, run_state
from laser_tf.replay import contextual_replay
from testing import fakes, numbered_sequences


class RemoteActorsTest(absltest.TestCase):
    def _replay(self, workdir: pathlib.Path, source: mock.Mock, **replay):
        context = mock.Mock(workdir=workdir)
        context.call.return_value = None
        with (
            mock.patch.object(replay_role, "connect_learner", return_value=source) as opened,
            mock.patch.object(remote_actors, "Publisher"),
        ):
            actors = remote_actors.RemoteActors(
                context, fakes.r2d2_catch_config(replay=replay), mock.Mock(),
                numbered_sequences.SIGNATURE, lambda episode: None, is_new=True,
            )  # fmt: skip
        actors.stop()
        self.assertTrue(opened.call_args.kwargs["is_new"])
        return actors.learner_client

    def test_contextual_replay_keeps_and_saves_sequences(self):
        source = mock.Mock()
        with tempfile.TemporaryDirectory() as folder:
            workdir = pathlib.Path(folder)
            self.assertIs(self._replay(workdir, source), source)
            replay = self._replay(workdir, source, scheme="contextual")
            self.assertIsInstance(replay, contextual_replay.ContextualReplay)
            replay.store.add(numbered_sequences.make(0, 5))
            replay.checkpoint()
            source.checkpoint.assert_called_once()
            self.assertEqual(self._replay(workdir, source, scheme="contextual").size(), 1)


class PublisherTest(absltest.TestCase):
    def test_weights_are_published_once_there_is_room(self):
        trained = mock.Mock()
        trained.counters.learner_updates = tf.Variable(7, dtype=tf.int64)
        trained.counters.agent_steps = tf.Variable(70, dtype=tf.int64)
        trained.agent.acting_variables = [tf.Variable([1.0])]
        publisher = remote_actors.Publisher(trained, action_repeat=4, period_seconds=0.0)
        full = ray.exceptions.OutOfDiskError("no space left")
        with (
            mock.patch.object(ray, "put", side_effect=[full, full, "reference"]) as put,
            self.assertLogs(level="INFO") as logs,
        ):
            found = [publisher.copy_if_due() for _ in range(4)]
        self.assertEqual(found[:2], [None, None])
        self.assertEqual(found[2], run_state.PublishedWeights(7, 280, ["reference"]))
        self.assertIs(found[3], found[2])  # The weights have not changed.
        self.assertEqual(put.call_count, 3)
        self.assertLen(logs.output, 2)  # One failure, one success.


if __name__ == "__main__":
    absltest.main()
