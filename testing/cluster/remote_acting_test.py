"""What a learner of remote actors draws from."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from laser_tf.cluster import remote_acting, replay_role, weights
from laser_tf.replay import contextual_replay
from testing import fakes, numbered_sequences


class RemoteActingTest(absltest.TestCase):
    def _replay(self, workdir: pathlib.Path, source: mock.Mock, **replay):
        context = mock.Mock(workdir=workdir)
        context.call.return_value = None
        with (
            mock.patch.object(replay_role, "connect_learner", return_value=source) as opened,
            mock.patch.object(weights, "Publisher"),
        ):
            acting = remote_acting.RemoteActing(
                context, fakes.r2d2_catch_config(replay=replay), mock.Mock(),
                numbered_sequences.SIGNATURE, lambda episode: None, is_new=True,
            )  # fmt: skip
        acting.stop()
        self.assertTrue(opened.call_args.kwargs["is_new"])
        return acting.replay

    def test_with_contextual_priorities_it_keeps_the_sequences_and_saves_them(self):
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


if __name__ == "__main__":
    absltest.main()
