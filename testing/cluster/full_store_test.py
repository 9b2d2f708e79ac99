"""Weights for which Ray's object store and the disk behind it have no room, without Ray."""

from unittest import mock

import ray
from absl.testing import absltest

from laser_tf.cluster import remote_evaluator, weights
from laser_tf.environments import worker_pool

_FULL = ray.exceptions.OutOfDiskError("no space left")


class FullStoreTest(absltest.TestCase):
    def _make_publisher(self, context: mock.Mock) -> weights.Publisher:
        with (
            mock.patch.object(weights.array_function, "ArrayFunction") as read,
            mock.patch.object(weights.threading, "Thread"),
        ):
            read.return_value.return_value = (7, [])
            return weights.Publisher(context, mock.Mock(), lambda: 280, 0.0)

    def test_weights_are_handed_out_again_once_there_is_room(self):
        context = mock.Mock()
        publisher = self._make_publisher(context)
        context.ask.side_effect = lambda *_: publisher._closed.set()
        with (
            mock.patch.object(weights.ray, "put", side_effect=[_FULL, _FULL, "reference"]) as put,
            self.assertLogs(level="INFO") as logs,
        ):
            publisher._publish()
        self.assertEqual(put.call_count, 3)
        method, newest = context.ask.call_args.args
        self.assertEqual((method, newest.learner_updates), ("publish", 7))
        self.assertLen(logs.output, 2)  # once that there is none, and once that there is
        self.assertIn("cannot hand out weights (OutOfDiskError)", logs.output[0])

    def test_an_evaluation_without_room_for_its_weights_has_failed_and_the_next_may_not(self):
        evaluator = remote_evaluator.RemoteEvaluator(mock.Mock())
        with mock.patch.object(remote_evaluator, "ray", mock.Mock(exceptions=ray.exceptions)) as r:
            r.put.side_effect = _FULL
            evaluator.begin([], 280, 7)
            self.assertIsInstance(evaluator.result(), worker_pool.Failure)
            r.put.side_effect = None
            r.wait.return_value = [[], []]
            evaluator.begin([], 560, 14)
            self.assertIsNone(evaluator.result())


if __name__ == "__main__":
    absltest.main()
