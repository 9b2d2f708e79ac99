"""Weights while Ray's object store and its disk are full, without Ray."""

from unittest import mock

import ray
from absl.testing import absltest

from laser_tf.cluster import evaluator_role, weights
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

    def test_weights_are_published_again_once_there_is_room(self):
        context = mock.Mock()
        publisher = self._make_publisher(context)
        context.call.side_effect = lambda *_: publisher._closed.set()
        with (
            mock.patch.object(weights.ray, "put", side_effect=[_FULL, _FULL, "reference"]) as put,
            self.assertLogs(level="INFO") as logs,
        ):
            publisher._publish()
        self.assertEqual(put.call_count, 3)
        method, newest = context.call.call_args.args
        self.assertEqual((method, newest.learner_updates), ("publish", 7))
        self.assertLen(logs.output, 2)  # One failure, one success.
        self.assertIn("OutOfDiskError", logs.output[0])

    def test_evaluation_without_room_fails_and_the_next_succeeds(self):
        evaluator = evaluator_role.RemoteEvaluator(mock.Mock())
        with mock.patch.object(evaluator_role, "ray", mock.Mock(exceptions=ray.exceptions)) as r:
            r.put.side_effect = _FULL
            evaluator.begin([], 280, 7)
            self.assertIsInstance(evaluator.result(), worker_pool.Failure)
            r.put.side_effect = None
            r.wait.return_value = [[], []]
            evaluator.begin([], 560, 14)
            self.assertIsNone(evaluator.result())


if __name__ == "__main__":
    absltest.main()
